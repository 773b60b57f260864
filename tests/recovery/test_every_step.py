"""`kill -9` of slots, Python workers and the driver at every named step of an epoch: nothing is lost, nothing twice."""

from __future__ import annotations

import os
from collections import Counter
from itertools import product

import pytest

from headwater.runtime.epoch import fault
from tests.recovery import bursts
from tests.recovery.conftest import MakeRun
from tests.recovery.runs import ENGINE, ENGINES, KILLED, RUN_SECONDS, Fault, assert_same
from tests.recovery.test_switching import Bursts
from tests.spark.harness import epochs_of

FULL = os.environ.get("CHAOS") == "full"
CLUSTER = {"headwater.master": "local-cluster[2,1,1024]"}
on_a_cluster = [
    pytest.mark.skipif(not FULL, reason="each step once in test_local_cluster; all of them by make chaos"),
    pytest.mark.timeout(1_800),
]
WHERE = [
    *(pytest.param({ENGINE: engine}, id=engine) for engine in ENGINES),
    *(pytest.param({ENGINE: engine} | CLUSTER, id=f"{engine}-cluster", marks=on_a_cluster) for engine in ENGINES),
]
CLUSTER_SECONDS = 1_200
"""Where executors are processes of their own, all takes longer."""

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


@pytest.mark.parametrize("conf", WHERE)
def test_slots_and_workers_killed_at_every_step(
    conf: dict[str, str], make_run: MakeRun, unfailed_lines: Counter[str]
) -> None:
    run = make_run(conf=conf)
    run.plan(SLOTS_AND_WORKERS)
    progress = run.finish(CLUSTER_SECONDS if FULL else RUN_SECONDS)
    run.assert_all_fired_in_mid_run()
    inside = Counter(each.victim for each in SLOTS_AND_WORKERS if each.step in INSIDE_THE_EPOCH)
    assert progress["restarts"] >= inside.total(), "a kill inside an epoch did not fail the attempt"
    assert progress["restored_slots"] >= inside["slot"], "a killed slot was not missed"
    assert_same(run.lines(), unfailed_lines)
    assert not run.pending_files()


@pytest.mark.parametrize("conf", WHERE)
def test_driver_killed_at_every_step(conf: dict[str, str], make_run: MakeRun, unfailed_lines: Counter[str]) -> None:
    """The next driver starts at once, while the JVM and the slots of the one before are still about to end."""
    run = make_run(conf=conf)
    run.plan(DRIVERS)
    run.finish()
    run.assert_all_fired_in_mid_run()
    end = run.latest()
    assert end is not None and end.incarnation == len(DRIVERS), "the first one left no manifest to count from"
    assert_same(run.lines(), unfailed_lines)
    assert not run.pending_files()


@pytest.mark.parametrize("conf", [pytest.param(CLUSTER, id="cluster", marks=on_a_cluster)])
def test_each_killed_at_every_step_while_engines_change(conf: dict[str, str], make_run: MakeRun) -> None:
    """With `auto`: each is killed while epochs run resident; those after it run with shuffles."""
    job = Bursts(make_run, **conf, **epochs_of(5_000))  # what comes while it is down fits into one
    run = job.run
    driver = run.start()
    faults = [Fault(step, None, victim) for step, victim in product(fault.STEPS, ("slot", "worker", "driver"))]
    for each in faults:
        job.slowly_until_resident()
        run.plan([each])
        job.slowly_until(lambda each=each: each in run.fired(), f"{each} to fire", records=20)  # type: ignore[misc]
        if each.victim == "driver":
            assert driver.wait(30) == KILLED, run.log()
            driver = run.start()
        assert driver.poll() is None, run.log()
    job.slowly_until_resident()
    job.end()
    run.assert_all_fired_in_mid_run()
    engines = Counter(job.engines())
    assert min(engines["resident"], engines["shuffle"]) >= len(faults), engines
    assert_same(run.lines(), bursts.expected(job.feeder.fed))
    assert not run.pending_files()
