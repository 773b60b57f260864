"""The scheduler of the simulator: one at a time, in an order that the seed says."""

from __future__ import annotations

import pytest

from tests.chaos.simulator.scheduler import Killed, Scheduler, SimulatedBackground, StuckError


def nothing() -> None:
    pass


def history(seed: int) -> list[str]:
    scheduler = Scheduler(seed, patience=0.3)
    seen: list[str] = []

    def live(name: str) -> None:
        for number in range(5):
            seen.append(f"{name}{number}")
            scheduler.step()

    for name in "abc":
        scheduler.spawn(name, name, lambda name=name: live(name))  # type: ignore[misc]
    scheduler.run(nothing)
    return seen


def test_a_seed_is_an_order() -> None:
    assert history(1) == history(1)
    assert len({tuple(history(seed)) for seed in range(10)}) > 5
    assert all([item for item in history(seed) if item[0] == "a"] == [f"a{n}" for n in range(5)] for seed in range(5))


def test_the_dead_do_nothing_more() -> None:
    scheduler = Scheduler(0, patience=0.0)
    seen: list[str] = []

    def victim() -> None:
        try:
            for _ in range(10):
                seen.append("victim")
                scheduler.step()
        finally:
            with pytest.raises(Killed):
                scheduler.step()
            seen.append("unwound")

    def killer() -> None:
        scheduler.step()
        scheduler.kill("driver")
        seen.append("killed")

    scheduler.spawn("slot", "driver/slot", victim)
    scheduler.spawn("killer", "killer", killer)
    scheduler.run(nothing)
    assert seen[seen.index("killed") + 1 :] == ["unwound"]


def test_who_is_frozen_sleeps_while_others_go_on() -> None:
    scheduler = Scheduler(0, patience=0.0)
    seen: list[str] = []

    def sleeper() -> None:
        scheduler.freeze("sleeper", 50)
        scheduler.step()
        seen.append(f"woke at {scheduler.steps >= 50}")

    def other() -> None:
        for _ in range(5):
            scheduler.step()
        seen.append("other")

    scheduler.spawn("sleeper", "sleeper", sleeper)
    scheduler.spawn("other", "other", other)
    scheduler.run(nothing)
    assert seen == ["other", "woke at True"]


def test_futures_wait_for_who_works_beside() -> None:
    scheduler = Scheduler(3, patience=0.0)
    seen: list[object] = []

    def live() -> None:
        background = SimulatedBackground(scheduler, "driver", lambda: 0)
        future = background.start("upload", lambda: (scheduler.pause(20), "done")[1])
        with pytest.raises(TimeoutError):
            future.result(0.1)
        seen.append(future.result(None))
        queue = background.queue("checkpoint")
        for number in range(3):
            queue.submit(lambda number=number: (scheduler.step(), seen.append(number)))
        failed = queue.submit(lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            failed.result()
        queue.shutdown()

    actor = scheduler.spawn("driver", "driver", live)
    scheduler.run(nothing)
    assert actor.error is None
    assert seen == ["done", 0, 1, 2]


def test_everybody_waiting_is_an_error_and_leaves_no_thread() -> None:
    scheduler = Scheduler(0, patience=0.0)
    actor = scheduler.spawn("driver", "driver", lambda: scheduler.wait_until(lambda: False))
    with pytest.raises(StuckError, match="everybody waits: driver"):
        scheduler.run(nothing)
    scheduler.end()
    assert actor.done
