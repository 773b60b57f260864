"""Metrics of user functions: reported per operator and partition, and every record counts once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.store import ManifestStore
from headwater.datastream import (
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from headwater.runtime.epoch.decisions import Pace
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason
from headwater.runtime.epoch.messages import EpochHeader
from headwater.runtime.epoch.restart_policy import FixedDelay
from headwater.runtime.epoch.sizing import EpochSizer
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.loop import run_epochs
from headwater.testing import CollectingSink, in_process
from tests.unit.runtime.in_process_engine import InProcessEngine, plan_of


class Measured(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group()
        self.seen = group.counter("seen")
        self.values = group.add_group("by").distribution("value")
        self.last = 0
        group.gauge("last", lambda: self.last)

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        self.seen.inc()
        self.values.update(value)
        self.last = value
        yield value


class Early(MapFunction):
    """Runs with the source, in a worker."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_metrics_group().counter("seen")

    def map(self, value: int) -> int:
        self.seen.inc()
        return value


def measuring(env: StreamExecutionEnvironment) -> DataStream:
    early = env.from_collection(range(100)).map(Early()).set_parallelism(1).uid("early")
    return early.key_by(lambda n: n % 7).process(Measured()).uid("measured").map(lambda n: n).uid("silent")


def run(tmp_path: Path, fault: Any = None, moment: str = "before") -> Coordinator:
    layout = CheckpointLayout(tmp_path / "checkpoints")
    layout.create()
    plan = plan_of(measuring, 2, CollectingSink(str(tmp_path / "out")))
    engine = InProcessEngine(plan, layout)
    if fault is not None:
        setattr(engine, moment, lambda header: fault(engine, header))
    coordinator = Coordinator(
        plan,
        "job",
        engine,
        ManifestStore(layout),
        FixedDelay(attempts=3, delay_ms=0),
        EpochSizer(10_000, 10, 10),
        retained=2,
    )
    run_epochs(coordinator, Pace(epoch_ms=10_000))
    return coordinator


def total(coordinator: Coordinator, uid: str, path: str, field: str = "count") -> Any:
    return sum(partition[path][field] for partition in coordinator.progress.as_dict()["metrics"][uid].values())


def test_metrics_are_reported_per_operator_and_partition(tmp_path: Path) -> None:
    coordinator = run(tmp_path)
    measured = coordinator.progress.accumulators()["metrics"]
    assert set(measured) == {"early", "measured"}, "an operator that measures nothing reports nothing"
    assert set(measured["measured"]) == {0, 1}
    assert total(coordinator, "early", "seen") == 100
    assert total(coordinator, "measured", "seen") == 100
    assert total(coordinator, "measured", "by.value", "sum") == sum(range(100))
    parts = measured["measured"].values()
    assert min(part["by.value"]["min"] for part in parts) == 0
    assert max(part["by.value"]["max"] for part in parts) == 99
    assert max(part["last"]["value"] for part in parts) == 99


@pytest.mark.parametrize("moment", ["before", "after_stages"])
def test_a_replayed_epoch_counts_once(tmp_path: Path, moment: str) -> None:
    fired = []

    def fail_twice(engine: InProcessEngine, header: EpochHeader) -> None:
        if header.attempt.epoch == 3 and header.attempt.number < 2:
            fired.append(header.attempt.number)
            raise AttemptFailedError("a worker died", FailureReason.PROCESS_LOST)

    coordinator = run(tmp_path, fail_twice, moment)
    assert fired == [0, 1]
    assert total(coordinator, "early", "seen") == 100
    assert total(coordinator, "measured", "seen") == 100


def test_a_lost_slot_takes_no_counts_with_it(tmp_path: Path) -> None:
    def kill_once(engine: InProcessEngine, header: EpochHeader) -> None:
        if header.attempt.epoch == 4:
            engine.kill_slot(1, 0)

    coordinator = run(tmp_path, kill_once)
    assert coordinator.progress.restored_slots == 1
    assert total(coordinator, "measured", "seen") == 100


@pytest.mark.parametrize("kill_at", [1, 4, 5])
def test_epochs_that_a_job_goes_back_over_count_once(kill_at: int, tmp_path: Path) -> None:
    """With a checkpoint at every third epoch; before the first one, the job goes back to its beginning."""
    with in_process(epoch_records=10, checkpoint_epochs=3) as here:
        here.kill_slot("measured", partition=0, epoch=kill_at)
        env = StreamExecutionEnvironment.get_execution_environment()
        measuring(env).sink_to(CollectingSink(str(tmp_path)))
        env.execute()
    coordinator = here.jobs[0].client._coordinator
    assert coordinator is not None and coordinator.progress.rewinds == 1
    assert total(coordinator, "early", "seen") == total(coordinator, "measured", "seen") == 100
    assert total(coordinator, "measured", "by.value", "sum") == sum(range(100))
