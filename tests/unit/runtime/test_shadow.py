"""Shadow runs without Spark: sinks are diverted, input is compared, and what differs is found."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.store import ManifestStore
from headwater.common import Row, WatermarkStrategy
from headwater.common.errors import HeadwaterError
from headwater.datastream import DataStream, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.graph.plan import JobPlan
from headwater.operators.sink import SinkOperator
from headwater.runtime.epoch.decisions import Run
from headwater.runtime.epoch.restart_policy import NoRestart
from headwater.runtime.epoch.sizing import EpochSizer
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.shadow.diff import DifferingRecord, common_stand, compare_sinks, first_records, last_stand
from headwater.runtime.shadow.run import ShadowRun, diverted
from headwater.runtime.shadow.sink import DivertedSink, comparable_text, diverted_records
from headwater.testing import CollectingSink
from tests.unit.runtime.in_process_engine import InProcessEngine

FORK = Manifest("job", "numbers", -1, 1, 0, 0, "", 128)
EPOCH = 10


def numbers(
    change: Callable[[int], Any], sink: CollectingSink, count: int = 100, rate: float | None = None, uid: str = "out"
) -> JobPlan:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    source = DataGeneratorSource(lambda index: index, count, rate_per_second=rate)
    stream: DataStream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    stream.key_by(lambda number: number % 3).map(change).uid("change").sink_to(sink).uid(uid)
    return env._plan("numbers")[0]


def run(plan: JobPlan, directory: Path, epochs: int | None = 3, ahead: int = 0) -> ShadowRun:
    """Run it as a shadow from the very beginning; `ahead`: so many epochs more than were asked for."""
    shadow = ShadowRun("", -1, str(directory), EPOCH, epochs)
    layout = CheckpointLayout(shadow.checkpoints)
    layout.create()
    plan = diverted(plan, shadow.output)
    shadow.sinks_file.write_text('["out"]' if plan.operator(max(_ids(plan))).uid == "out" else '["other"]')
    engine = InProcessEngine(plan, layout)
    sizer = EpochSizer(10_000, EPOCH, EPOCH)
    coordinator = Coordinator(plan, "job", engine, ManifestStore(layout), NoRestart(), sizer, retained=1000)
    for _ in range((epochs or 3) + ahead):
        run = Run(cut=coordinator.checkpoints.in_flight is None)
        coordinator.run_epoch(coordinator.plan_epoch(run, coordinator.stamp()))
    coordinator.settle_checkpoint()
    coordinator.close()
    return shadow


def _ids(plan: JobPlan) -> list[int]:
    return [operator.id for stage in plan.stages for operator in stage.operators]


@pytest.fixture
def sink(tmp_path: Path) -> CollectingSink:
    return CollectingSink(str(tmp_path / "real"))


def test_nothing_reaches_the_real_sink(sink: CollectingSink, tmp_path: Path) -> None:
    shadow = run(numbers(lambda number: number, sink), tmp_path / "shadow")
    assert sink.results() == []
    written = list(diverted_records(shadow.output, "out"))
    assert sorted(text for _, texts in written for text in texts) == sorted(str(number) for number in range(30))
    assert [epoch for epoch, _ in written] == [0, 1, 2]


def test_the_job_is_the_same_otherwise(sink: CollectingSink) -> None:
    plan = numbers(lambda number: number, sink, rate=5.0)
    shadow = diverted(plan, Path("/nowhere"))
    assert shadow.name == "numbers (shadow)", "whoever means the real job must not meet its shadow"
    assert shadow.sources[0].source.rate_per_second is None, "or the clock would cut the epochs"
    assert plan.sources[0].source.rate_per_second == 5.0
    for stage, twin in zip(plan.stages, shadow.stages, strict=True):
        for operator, other in zip(stage.operators, twin.operators, strict=True):
            if operator.sink is None:
                assert operator is other
            else:
                made = other.factory()
                assert isinstance(made, SinkOperator) and isinstance(made.sink, DivertedSink)
                assert dataclasses.replace(other, sink=operator.sink, factory=operator.factory) == operator


def test_output_of_the_forked_job_is_left_alone(tmp_path: Path) -> None:
    committer = DivertedSink(str(tmp_path), "out").create_committer()
    committer.commit([{"file": "part-1", "of": "the real sink"}])
    assert list(diverted_records(tmp_path, "out")) == []


def test_the_same_program_gives_no_difference(sink: CollectingSink, tmp_path: Path) -> None:
    old = run(numbers(lambda number: number, sink), tmp_path / "old")
    new = run(numbers(lambda number: number, sink), tmp_path / "new", ahead=2)
    stand = common_stand(old, new, FORK)
    assert (stand.epoch, stand.records, stand.finished) == (2, 30, False)
    (out,) = compare_sinks(old, new, stand.epoch)
    assert out.same and (out.old, out.new) == (30, 30)


def test_differences_are_found_and_ordered(sink: CollectingSink, tmp_path: Path) -> None:
    old = run(numbers(lambda number: number, sink), tmp_path / "old")
    new = run(numbers(lambda number: 0 if number in (5, 25) else number, sink), tmp_path / "new")
    (out,) = compare_sinks(old, new, common_stand(old, new, FORK).epoch)
    assert not out.same and (out.old, out.new) == (30, 30)
    assert out.only_old == (DifferingRecord(0, "5", 1), DifferingRecord(2, "25", 1))
    assert out.only_new == (DifferingRecord(0, "0", 2),), "a multiset: one 0 is in both"


def test_other_input_is_not_compared(sink: CollectingSink, tmp_path: Path) -> None:
    old = run(numbers(lambda number: number, sink), tmp_path / "old", epochs=None)
    shorter = numbers(lambda number: number, sink, count=25)
    new = run(shorter, tmp_path / "new", epochs=None)
    assert common_stand(old, new, FORK).epoch == 1, "the last epoch after which both had read the same"
    none = run(numbers(lambda number: number, sink, count=5), tmp_path / "none", epochs=None)
    with pytest.raises(HeadwaterError, match=r"after epoch 0 source 'numbers' stands at another place\. Compare on"):
        common_stand(old, none, FORK)
    with pytest.raises(HeadwaterError, match="they have no checkpoint of the same epoch"):
        common_stand(old, ShadowRun("", -1, str(tmp_path / "empty"), EPOCH, 3), FORK)
    with pytest.raises(HeadwaterError, match="the run completed no epoch"):
        last_stand(ShadowRun("", -1, str(tmp_path / "empty"), EPOCH, 3), FORK)


def test_a_sink_that_only_one_program_has(sink: CollectingSink, tmp_path: Path) -> None:
    old = run(numbers(lambda number: number, sink), tmp_path / "old")
    new = run(numbers(lambda number: number, sink, uid="other"), tmp_path / "new")
    other, out = compare_sinks(old, new, 2)
    assert (other.old, other.new, out.old, out.new) == (None, 30, 30, None)
    assert not other.same and not out.same


def test_one_program_alone(sink: CollectingSink, tmp_path: Path) -> None:
    shadow = run(numbers(lambda number: number, sink), tmp_path / "new", ahead=3)
    stand = last_stand(shadow, FORK)
    assert (stand.epoch, stand.records) == (2, 30)
    count, records = first_records(shadow, "out", stand.epoch, 2)
    assert (count, [record.text for record in records]) == (30, ["0", "1"])


class Point(NamedTuple):
    x: int
    tags: Any


class Plain:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def dataclass_named(name: str, **fields: Any) -> Any:
    return dataclasses.make_dataclass(name, list(fields))(**fields)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (1.0, "1.0"),
        (True, "True"),
        ("a", "'a'"),
        (None, "None"),
        ({"b": 1, "a": {2, 1}}, "{'a': {1, 2}, 'b': 1}"),
        (OrderedDict(b=1, a=2), "OrderedDict({'a': 2, 'b': 1})"),
        ((1, [2, {"k"}]), "(1, [2, {'k'}])"),
        (frozenset("ba"), "frozenset({'a', 'b'})"),
        (Point(1, {"z", "a"}), "Point(tags={'a', 'z'}, x=1)"),
        (dataclass_named("Account", total=1, names={"b": 1, "a": 2}), "Account(names={'a': 2, 'b': 1}, total=1)"),
        (Plain(b=1, a=2), "Plain(a=2, b=1)"),
        (Row(a=1, b="x"), "Row(a=1, b='x')"),
    ],
)
def test_texts(value: Any, text: str) -> None:
    assert comparable_text(value) == text


def test_the_same_class_in_two_programs_gives_the_same_text() -> None:
    one, other = dataclass_named("Account", total=1), dataclass_named("Account", total=1)
    assert one != other
    assert comparable_text(one) == comparable_text(other)
