"""Operators that hold their output back until the end of the epoch: in every kind of stage, and whatever dies."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.common import Time, WatermarkStrategy
from headwater.common.errors import UserCodeError
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.datastream import DataStream, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.window import TumblingEventTimeWindows
from headwater.operators.base import Operator
from headwater.runtime.stage.edge_ids import edge_id
from headwater.testing import (
    STEPS,
    CollectingSink,
    JobCrashed,
    OneInputOperatorHarness,
    assert_same_records,
    in_process,
)
from tests.unit.runtime.in_process_engine import plan_of
from tests.unit.runtime.test_stage_runner import NOW_MS, head_of, runner_of

RECORDS = 40
EPOCH_RECORDS = 6
BY_VALUE = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[0])


class Hold(Operator):
    """Emits the records of an epoch at its end, each marked with this operator's name, and then the watermark."""

    def __init__(self, name: str = "held") -> None:
        self.name = name
        self._drop()

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        self._values += [(time_ms, f"{path}>{self.name}") for time_ms, path in values]
        self._timestamps += timestamps or [None] * len(values)

    def process_watermark(self, watermark: int) -> None:
        self.context.watermark = self._watermark = watermark

    def process_idle(self, idle: bool) -> None:
        self._idle = idle

    def end_epoch(self) -> None:
        if self._values:
            self.output.emit(self._values, self._timestamps)
        if self._watermark is not None:
            self.output.emit_watermark(self._watermark)
        if self._idle is not None:
            self.output.emit_idle(self._idle)
        self._drop()

    def abort_epoch(self) -> None:
        self._drop()

    def _drop(self) -> None:
        self._values: list[Any] = []
        self._timestamps: list[int | None] = []
        self._watermark: int | None = None
        self._idle: bool | None = None


class HoldButLetTimePass(Hold):
    """Wrong: the watermark overtakes what is held back."""

    def process_watermark(self, watermark: int) -> None:
        Operator.process_watermark(self, watermark)


class RememberOnly(Hold):
    """Leaves `context.watermark` alone too: it is set when the watermark is emitted."""

    def process_watermark(self, watermark: int) -> None:
        self._watermark = watermark

    def end_epoch(self) -> None:
        watermark = self._watermark
        super().end_epoch()
        if watermark is not None:
            self.context.watermark = watermark


class Exit(Hold):
    def end_epoch(self) -> None:
        if self._values:
            sys.exit(3)


def held(stream: DataStream, name: str, kind: type[Hold] = Hold, *, keyed: bool = False) -> DataStream:
    return stream._add("hold", "Hold", lambda: kind(name), keyed=keyed).uid(name)


def by_time(value: Any) -> int:
    return int(value[0]) % 3


Shape = Callable[[DataStream, type[Hold]], DataStream]

SHAPES: dict[str, Shape] = {
    "stage 0": lambda numbers, kind: held(held(numbers, "a", kind), "b", kind),
    "a stateless stage": lambda numbers, kind: held(held(numbers.rebalance(), "a", kind), "b", kind),
    "one slot": lambda numbers, kind: held(held(numbers.key_by(by_time), "a", kind, keyed=True), "b", kind),
    "two stages of slots": lambda numbers, kind: held(
        held(numbers.key_by(by_time), "a", kind, keyed=True).key_by(by_time), "b", kind, keyed=True
    ),
}


def program(
    shape: Shape, sink: CollectingSink, kind: type[Hold] = Hold, count: int = RECORDS
) -> StreamExecutionEnvironment:
    """Records pass both operators, and are then counted in windows of 10 ms, which refuse late ones."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    numbers = env.from_source(
        DataGeneratorSource(lambda i: (i, ""), count=count), WatermarkStrategy.no_watermarks(), "numbers"
    )
    stream = shape(numbers.assign_timestamps_and_watermarks(BY_VALUE), kind)
    windows = stream.key_by(lambda value: value[1]).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    windows.reduce(lambda one, other: (one[0] + other[0], one[1])).sink_to(sink).name("out")
    return env


def expected() -> list[tuple[int, str]]:
    sums: Counter[int] = Counter()
    for number in range(RECORDS):
        sums[number // 10] += number
    return [(total, ">a>b") for total in sums.values()]


@pytest.fixture
def sink(tmp_path: Path) -> CollectingSink:
    return CollectingSink(str(tmp_path / "out"))


@pytest.mark.parametrize("kind", [Hold, RememberOnly])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_record_is_late_where_the_watermark_is_held_back_too(
    sink: CollectingSink, shape: str, kind: type[Hold]
) -> None:
    with in_process(epoch_records=EPOCH_RECORDS):
        program(SHAPES[shape], sink, kind).execute()
    assert_same_records(sink.results(), expected())


@pytest.mark.parametrize("shape", SHAPES)
def test_records_are_late_where_the_watermark_overtakes_them(sink: CollectingSink, shape: str) -> None:
    with in_process(epoch_records=RECORDS):
        program(SHAPES[shape], sink, HoldButLetTimePass).execute()
    assert sum(total for total, _ in sink.results()) < sum(range(RECORDS))


@pytest.mark.parametrize("at", STEPS)
@pytest.mark.parametrize("shape", SHAPES)
def test_each_record_counts_once_if_the_job_dies(sink: CollectingSink, shape: str, at: str) -> None:
    with in_process(epoch_records=EPOCH_RECORDS) as here:
        crash = here.crash_job(epoch=3, at=at)
        with pytest.raises(JobCrashed):
            program(SHAPES[shape], sink).execute()
        assert crash.fired == 1
        program(SHAPES[shape], sink).execute()
    assert_same_records(sink.results(), expected())


@pytest.mark.parametrize("at", STEPS)
@pytest.mark.parametrize("uid", ["a", "b"])
def test_each_record_counts_once_if_a_slot_or_an_attempt_fails(sink: CollectingSink, uid: str, at: str) -> None:
    with in_process(epoch_records=EPOCH_RECORDS) as here:
        kill = here.kill_slot(uid, partition=1, epoch=3, at=at)
        failure = here.fail_attempt(epoch=4)
        program(SHAPES["two stages of slots"], sink).execute()
        assert kill.fired == failure.fired == 1
    assert_same_records(sink.results(), expected())


def test_what_is_held_back_reaches_the_next_operator_before_its_own_end() -> None:
    plan = plan_of(
        lambda env: held(held(env.from_collection([1]).key_by(str), "a", keyed=True), "b").key_by(str).map(str)
    )
    head = head_of(plan)
    runner, emitted = runner_of(plan, 1)
    runner.begin_epoch(0, "attempt", NOW_MS, {})
    runner.batch(edge_id(head, 0), [(1, ""), (2, "")], [1, 2])
    runner.advance(head, 50)
    assert not emitted.frames
    outcome = runner.finish_epoch(NOW_MS)
    assert emitted.chunks() == [(MIN_WATERMARK, [(1, ">a>b"), (2, ">a>b")])]
    assert outcome.watermarks == {"head:a": 50, "out:a": 50, "out:b": 50}

    runner.begin_epoch(1, "attempt", NOW_MS, outcome.watermarks)
    runner.advance(head, MAX_WATERMARK)
    assert runner.finish_epoch(NOW_MS).watermarks["out:b"] == MAX_WATERMARK
    assert emitted.ends()[-1][1:] == (MAX_WATERMARK, False, True)


def test_an_operator_that_holds_nothing_back_is_not_called() -> None:
    plan = plan_of(lambda env: held(env.from_collection([1]).map(str), "a").key_by(str).map(str))
    runner, _ = runner_of(plan, 0)
    assert {gate.spec.uid for gate in runner._gates.values() if gate.holds_back} == {"a"}


def test_sys_exit_at_the_end_of_an_epoch_fails_the_job_and_not_its_process(sink: CollectingSink) -> None:
    with (
        in_process(epoch_records=EPOCH_RECORDS),
        pytest.raises(UserCodeError, match=r"(?s)Hold.*the epoch ended.*SystemExit: 3"),
    ):
        program(SHAPES["one slot"], sink, Exit).execute()


def test_the_harness_ends_epochs() -> None:
    with OneInputOperatorHarness(Hold("a")) as harness:
        harness.process_elements([(1, ""), (2, "")], [1, 2])
        harness.process_watermark(5)
        assert harness.get_output() == [] and harness.get_watermarks() == []
        harness.end_epoch()
        assert harness.get_output() == [(1, ">a"), (2, ">a")] and harness.get_watermarks() == [5]

        harness.process_element((3, ""), 6)
        harness.fail_epoch()
        harness.process_element((4, ""), 6)
        harness.end_input()
        harness.end_epoch()
        assert harness.get_output()[2:] == [(4, ">a")]
        assert harness.get_watermarks() == [5, MAX_WATERMARK]
