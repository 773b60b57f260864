"""Runs epoch attempts on simulated slots: the real `Slot` and `StageRunner`, each slot an actor of its own.

The loop over the stages is the product's (`stage/round.py`); the relay between it and the slots is simulated.
Partitions run side by side; a slot serves one attempt at a time and only the newest; a relay that loses its slot fails
the attempt.
"""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from headwater.checkpoint.paths import CheckpointLayout
from headwater.common.errors import HeadwaterError
from headwater.common.ids import Place
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch import fault
from headwater.runtime.epoch.failure import ConnectionLostError, failure_of
from headwater.runtime.epoch.messages import BeginEpoch, EpochHeader, PartitionAck, SlotAddress, SourceTask
from headwater.runtime.epoch.steps import Step
from headwater.runtime.epoch.wakeup import Wakeup
from headwater.runtime.slot.fence import AttemptFence
from headwater.runtime.slot.slot import Slot
from headwater.runtime.stage.readers import KeptReaders
from headwater.runtime.stage.round import Event, OutputEnded, Round
from headwater.runtime.stage.runner import StageRunner
from headwater.runtime.stage.runners import StatelessRunners
from headwater.runtime.stage.source_task import read_dataframe
from tests.chaos.simulator import faults
from tests.chaos.simulator.scheduler import SimulatedBackground

if TYPE_CHECKING:
    from tests.chaos.simulator.driver import Driver


class Call:
    """One attempt on one slot, as its relay sees it."""

    def __init__(self, place: Place, begin: BeginEpoch, steps: list[Step], events: deque[Event]) -> None:
        self.place = place
        self.begin = begin
        self.steps = steps
        self._events = events
        self.cut = False
        """The connection is gone. The slot notices when it next receives."""
        self.ack: PartitionAck | None = None
        self.error: Exception | None = None

    def say(self, event: Event) -> None:
        """What the slot says to its relay, if that is still there."""
        if not self.cut:
            self._events.append(event)

    def lose(self) -> None:
        """The relay dies: whatever the slot says is not heard."""
        self.cut, self.ack = True, None


class SlotHost:
    """A slot process: the slot, the fence before it, and whether it is still there."""

    def __init__(self, engine: SimulatedEngine, place: Place) -> None:
        driver, world = engine.driver, engine.driver.world
        name = f"slot-{len(driver.all_hosts) + 1}"
        driver.all_hosts[name] = self
        self.engine = engine
        self.place = place
        self.group = f"{driver.group}/{name}"
        self.fence = AttemptFence()
        self.dead = False
        self.busy = False
        self.calls: list[Call] = []
        self.call: Call | None = None
        """The one that is served, or was served last."""
        address = SlotAddress(*place, "here", 0, "", os.getpid(), name)
        background = SimulatedBackground(world.scheduler, self.group, world.patience)
        seconds = world.checkpoint_timeout_ms / 1000
        self.slot = Slot(engine.plan, engine.job_id, address, engine.layout, background, seconds)
        self.slot._clock = lambda: driver.monotonic_ms() / 1000

    def receive(self, call: Call) -> None:
        """What the slot's server does with a connection."""
        if not self.fence.admits(call.begin.attempt):
            call.error = ConnectionLostError(f"attempt {call.begin.attempt.id} is fenced")
            return
        for earlier in self.calls:
            earlier.lose()
        self.calls = [*self.calls[-1:], call]
        scheduler = self.engine.driver.world.scheduler
        scheduler.spawn(f"{self.group} {call.begin.attempt.id}", self.group, lambda: self._serve(call))

    def _serve(self, call: Call) -> None:
        scheduler = self.engine.driver.world.scheduler
        scheduler.wait_until(lambda: not self.busy)
        if not self.fence.is_newest(call.begin.attempt):
            call.cut = True
            return
        self.busy = True
        try:
            self._apply(call)
        except ConnectionLostError:
            call.cut = True
            self.slot.abort()
        except Exception as error:
            self.slot.abort()
            call.error = error
        finally:
            self.busy = False

    def _apply(self, call: Call) -> None:
        self.call = call
        ack = self.slot.run(
            call.begin,
            lambda target, frame: call.say((target, frame)),
            self._received(call),
            lambda: call.say(OutputEnded(call.place)),
        )
        if not call.cut:
            # As it arrives at the driver: nothing is shared with the slot.
            call.ack = pickle.loads(pickle.dumps(ack))
            call.say(call.ack)
            fault.reached("acked", call.begin.attempt.epoch)

    @staticmethod
    def _received(call: Call) -> Iterator[Step]:
        """What the slot receives, until its relay is gone."""
        for step in call.steps:
            if call.cut:
                raise ConnectionLostError("the relay is gone")
            yield step
        if call.cut:
            raise ConnectionLostError("the relay is gone")

    def hear_of(self, token: str) -> None:
        """A message on its way: the checkpoint with `token` is durable."""
        scheduler = self.engine.driver.world.scheduler

        def hear() -> None:
            scheduler.wait_until(lambda: not self.busy)
            self.slot.checkpoint_completed(token)

        scheduler.spawn(f"{self.group} completed {token}", self.group, hear)

    def die(self) -> None:
        """As kill -9 would: its memory and what it was uploading are gone."""
        self.dead = True
        self.engine.driver.world.scheduler.kill(self.group)
        self.engine.forget(self)


class SimulatedEngine:
    """Implements `headwater.runtime.epoch.engine.Engine`."""

    watches = False

    def __init__(self, driver: Driver, plan: JobPlan, job_id: str, layout: CheckpointLayout | None) -> None:
        self.driver = driver
        self.plan = plan
        self.job_id = job_id
        self.layout = layout
        self.hosts: dict[Place, SlotHost] = {}
        self._runners = StatelessRunners(plan, job_id)
        self._readers = KeptReaders()

    def forget(self, host: SlotHost) -> None:
        """The relays do not find this slot any more."""
        if self.hosts.get(host.place) is host:
            del self.hosts[host.place]

    # --- Engine

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Any]:
        world = self.driver.world
        world.attempt_begins()
        relay = SimulatedRelay(self)
        attempt = SimulatedRound(self.plan, header, self._runners, self._readers, relay)
        attempt.driver = self.driver
        try:
            world.reached(faults.ATTEMPT_STARTED, self.driver)
            if header.base.in_flight is not None:
                world.reached(faults.CUT_IN_FLIGHT, self.driver)
                if self.driver.has_full_in_flight():
                    world.reached(faults.FULL_IN_FLIGHT, self.driver)
                if header.restores:
                    world.reached(faults.FIRST_IN_FLIGHT, self.driver)
            for source_id, dataframe in dataframes.items():
                attempt.read(0, partial(_dataframe_messages, header, source_id, dataframe))
            acks = attempt.run(tasks)
            world.reached(faults.EPOCH_ACKED, self.driver)
        except HeadwaterError as error:
            relay.cut()
            raise failure_of(error, "the engine") from None
        return [pickle.loads(pickle.dumps(ack)) for ack in acks]

    def wait(self, seconds: float, wakeup: Wakeup) -> bool:
        if not wakeup.wait(0):
            self.driver.world.clock_ms += round(seconds * 1000)
        self.driver.world.scheduler.step()
        return False

    def checkpoint_completed(self, token: str) -> None:
        """Each slot hears it when it is not at work: before the next attempt, between later ones, or never."""
        for host in self.hosts.values():
            host.hear_of(token)

    def cancel(self) -> None:
        pass

    def close(self) -> None:
        pass


def _dataframe_messages(header: EpochHeader, source_id: int, dataframe: Any, runner: StageRunner) -> Iterator[Any]:
    return read_dataframe(runner, header, source_id, 0, [dataframe.rows])


class SimulatedRound(Round):
    """The loop of the product. After each task of stage 0 something may happen."""

    driver: Driver

    def read(self, subtask: int, messages_of: Callable[[StageRunner], Iterable[Any]]) -> None:
        super().read(subtask, messages_of)
        self.driver.world.reached(faults.SOURCE_READ, self.driver)


class SimulatedRelay:
    """The slots of one attempt (`stage.round.Slots`), side by side. The first that fails ends the attempt."""

    def __init__(self, engine: SimulatedEngine) -> None:
        self._engine = engine
        self._calls: list[tuple[SlotHost, Call]] = []
        self._events: deque[Event] = deque()

    def call(self, known: SlotAddress | None, place: Place, begin: BeginEpoch, steps: Iterator[Step]) -> None:
        hosts = self._engine.hosts
        host = hosts.get(place)
        if host is None:
            host = hosts[place] = SlotHost(self._engine, place)
        call = Call(place, pickle.loads(pickle.dumps(begin)), list(steps), self._events)
        self._calls.append((host, call))
        host.receive(call)

    def events(self) -> Iterator[Event]:
        scheduler = self._engine.driver.world.scheduler
        while True:
            scheduler.wait_until(
                lambda: self._events or all(call.ack is not None for _, call in self._calls) or self._is_lost()
            )
            if not self._events:
                break
            yield self._events.popleft()
        for _, call in self._calls:
            if call.error is not None:
                raise call.error
        lost = [host.place for host, call in self._calls if call.ack is None]
        if lost:
            raise ConnectionLostError(f"partitions {lost} do not answer")

    def _is_lost(self) -> bool:
        return any(call.cut or call.error or (host.dead and call.ack is None) for host, call in self._calls)

    def cut(self) -> None:
        """The attempt is lost: the other relays go, too."""
        for _, call in self._calls:
            call.lose()
