"""`kill -9` of slots, Python workers and the driver at every named step of an epoch: nothing is lost, nothing twice."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from headwater.runtime.epoch import fault
from tests.recovery.conftest import MakeRun
from tests.recovery.runs import ENGINE, ENGINES, Fault, assert_same

ROUNDS = 2

# One fault per epoch, so that each hits a job that has just recovered from another kind of fault.
# A worker is the Spark task of one partition, or the resident task.
SLOTS_AND_WORKERS = [
    Fault(step, epoch, victim)
    for epoch, (step, victim) in enumerate(list(product(fault.STEPS, ("slot", "worker"))) * ROUNDS, start=1)
]

BEFORE_THE_FIRST_MANIFEST = Fault("snapshot-written", 0, "driver")
DRIVERS = [
    BEFORE_THE_FIRST_MANIFEST,
    *(Fault(step, 3 + 4 * number, "driver") for number, step in enumerate(fault.STEPS) if step != "snapshot-written"),
]

INSIDE_THE_EPOCH = ("chunk-received", "mid-chunk", "processed", "snapshot-written")
"""Steps at which the relay still waits for its slot: if either dies, the attempt must fail."""


def test_each_step_is_hit_at_least_five_times() -> None:
    fires = Counter(each.step for each in SLOTS_AND_WORKERS + DRIVERS)
    assert set(fires) == set(fault.STEPS) and min(fires.values()) >= 5


@pytest.mark.parametrize("engine", ENGINES)
def test_slots_and_workers_killed_at_every_step(engine: str, make_run: MakeRun, unfailed_lines: Counter[str]) -> None:
    run = make_run(conf={ENGINE: engine})
    run.plan(SLOTS_AND_WORKERS)
    progress = run.finish()
    run.assert_all_fired_in_mid_run()
    inside = Counter(each.victim for each in SLOTS_AND_WORKERS if each.step in INSIDE_THE_EPOCH)
    assert progress["restarts"] >= inside.total(), "a kill inside an epoch did not fail the attempt"
    assert progress["restored_slots"] >= inside["slot"], "a killed slot was not missed"
    assert_same(run.lines(), unfailed_lines)
    assert not run.pending_files()


@pytest.mark.parametrize("engine", ENGINES)
def test_driver_killed_at_every_step(engine: str, make_run: MakeRun, unfailed_lines: Counter[str]) -> None:
    """The next driver starts at once, while the JVM and the slots of the one before are still about to end."""
    run = make_run(conf={ENGINE: engine})
    run.plan(DRIVERS)
    run.finish()
    run.assert_all_fired_in_mid_run()
    end = run.latest()
    assert end is not None and end.incarnation == len(DRIVERS), "the first one left no manifest to count from"
    assert_same(run.lines(), unfailed_lines)
    assert not run.pending_files()
