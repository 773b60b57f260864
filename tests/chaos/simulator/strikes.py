"""What each kind of fault does to the world."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from headwater.common.errors import StorageError
from headwater.runtime.epoch.failure import ConnectionLostError
from tests.chaos.simulator.faults import Fault
from tests.chaos.simulator.jobs import MAX_PARALLELISM
from tests.chaos.simulator.scheduler import Killed

if TYPE_CHECKING:
    from tests.chaos.simulator.driver import Driver
    from tests.chaos.simulator.engine import Call, SlotHost
    from tests.chaos.simulator.world import World

_T = TypeVar("_T")

DAY_MS = 86_400_000


class InjectedError(OSError):
    """What a disk says."""


def at_step(world: World, fault: Fault, driver: Driver, host: SlotHost | None, call: Call | None) -> None:
    """A fault at a named step. Called by the actor that reached it; `host` and `call` are set inside a slot."""
    match fault.kind:
        case "driver-crash":
            crash_driver(world, driver)
        case "driver-zombie":
            freeze_driver(world, driver)
        case "slot-crash" | "slot-crash-beside-checkpoint":
            _crash_slot(world, host or _any_host(world, driver))
        case "slot-zombie":
            assert host is not None and call is not None
            _freeze_slot(world, host, call)
        case "worker-crash" | "lost-ack":
            if call is None:
                raise ConnectionLostError("a worker died")
            call.lose()
        case "duplicate-attempt":
            _deliver_again(world, host or _any_host(world, driver))
        case "clock-back":
            driver.skew_ms -= world.random.choice((50, 5_000, DAY_MS))
        case "clock-ahead":
            driver.skew_ms += world.random.choice((50, 5_000, DAY_MS))
        case "savepoint":
            driver.ask_for_savepoint(stop=False)
        case "stop-and-restore":
            driver.ask_for_savepoint(stop=True)
        case "rescale":
            driver.ask_to_rescale(another_parallelism(world, driver.parallelism))
        case "restart-rescaled":
            world.next_parallelism = another_parallelism(world, driver.parallelism)
            crash_driver(world, driver)
        case _:
            raise AssertionError(fault)


def at_store(
    world: World,
    fault: Fault,
    owner: tuple[Driver, SlotHost | None],
    perform: Callable[[], _T],
    tear: Callable[[], None] | None,
) -> _T:
    """A fault at an operation on the store, which `perform` would do."""
    driver, host = owner
    after = world.random.random() < 0.5
    match fault.kind:
        case "store-error":
            raise problem(world)
        case "store-down":
            world.store_is_down_for = world.random.randint(1, 10)
            raise problem(world)
        case "lost-answer":
            perform()
            raise problem(world)
        case "torn-write":
            assert tear is not None
            tear()
            if world.random.random() < 0.5:
                raise problem(world)
            _crash(world, driver, host)
        case "slow-store":
            world.scheduler.pause(world.random.randint(5, 300))
        case "slot-crash":
            if after:
                perform()
            if host is not None:
                _crash_slot(world, host)
        case "driver-crash":
            if after:
                perform()
            crash_driver(world, driver)
        case "driver-zombie":
            if after:
                result = perform()
                freeze_driver(world, driver)
                return result
            freeze_driver(world, driver)
        case _:
            raise AssertionError(fault)
    return perform()


def problem(world: World) -> Exception:
    """What the store says when it does not work: an OSError of a disk, or what is left after retries over a network."""
    if world.random.random() < 0.5:
        return InjectedError(world.random.choice((errno.ENOSPC, errno.EIO)), "injected", "a file")
    return StorageError("injected: the store is down")


def crash_driver(world: World, driver: Driver) -> None:
    """kill -9. Its slots end with it, or linger and write what they were writing."""
    driver.killed = True
    world.scheduler.kill(driver.process if world.random.random() < 0.5 else driver.group)
    _leave_if_dead(world)


def freeze_driver(world: World, driver: Driver) -> None:
    """SIGSTOP, for long enough that another one is started. It wakes up later and goes on with what it was doing."""
    driver.replaced = True
    group = driver.process if world.random.random() < 0.5 else driver.group
    world.scheduler.freeze(group, world.random.choice((5, 30, 100, 300, 1_000, 3_000)))
    world.scheduler.step()


def _crash(world: World, driver: Driver, host: SlotHost | None) -> None:
    if host is None:
        crash_driver(world, driver)
    else:
        _crash_slot(world, host)


def _crash_slot(world: World, host: SlotHost | None) -> None:
    if host is not None:
        host.die()
        _leave_if_dead(world)


def _freeze_slot(world: World, host: SlotHost, call: Call) -> None:
    """It hangs: its relay gives up and starts another. Later it wakes, and goes on."""
    host.engine.forget(host)
    call.lose()
    world.scheduler.freeze(host.group, world.random.choice((5, 50, 300, 1_000)))
    world.scheduler.step()


def _deliver_again(world: World, host: SlotHost | None) -> None:
    """A relay of an earlier attempt, or a second one of the same, comes to the slot."""
    if host is not None and host.calls:
        old = world.random.choice(host.calls)
        host.receive(type(old)(old.place, old.begin, old.steps, deque()))


def _any_host(world: World, driver: Driver) -> SlotHost | None:
    hosts = driver.engine.hosts if driver.engine is not None else {}
    return hosts[world.random.choice(sorted(hosts))] if hosts else None


def _leave_if_dead(world: World) -> None:
    current = world.scheduler.current
    if current is not None and current.killed:
        raise Killed


def another_parallelism(world: World, now: int) -> int:
    return world.random.choice([p for p in (1, 2, 3, 5, MAX_PARALLELISM) if p != now])
