"""The runner of a stage: wiring, watermarks, epochs."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headwater.common import WatermarkStrategy
from headwater.common.errors import TypeMismatchError, UserCodeError
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.common.typeinfo import Types
from headwater.datastream import (
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from headwater.datastream.state import ValueStateDescriptor
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.chunk import FrameKind, decode_header, decode_records, payload_of
from headwater.runtime.stage.edge_ids import edge_id
from headwater.runtime.stage.runner import StageRunner
from headwater.runtime.stage.wiring import RunnerIdentity
from tests.unit.runtime.in_process_engine import plan_of

NOW_MS = 1_700_000_000_000
BY_VALUE = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)


class Counting(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(100)
        yield ctx.get_current_key(), self.count.value()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield "timer", ctx.get_current_key(), timestamp


def counting(env: StreamExecutionEnvironment) -> DataStream:
    return (
        env.from_collection([1]).key_by(lambda value: value % 2).process(Counting()).uid("count").rebalance().map(str)
    )


class Emitted:
    """The frames of a runner."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def __call__(self, target: int, frame: bytes) -> None:
        self.frames.append(frame)

    def records(self) -> list[Any]:
        found: list[Any] = []
        for frame in self.frames:
            if decode_header(frame).kind == FrameKind.DATA:
                found += decode_records(payload_of(frame))[0]
        return found

    def chunks(self) -> list[tuple[int, list[Any]]]:
        """(watermark before, records) of each chunk, in order."""
        return [
            (decode_header(frame).watermark, decode_records(payload_of(frame))[0])
            for frame in self.frames
            if decode_header(frame).kind == FrameKind.DATA
        ]

    def ends(self) -> list[tuple[str, int, bool, bool]]:
        headers = [decode_header(frame) for frame in self.frames]
        return [(h.channel, h.watermark, h.idle, h.ended) for h in headers if h.kind == FrameKind.END]


def runner_of(plan: JobPlan, stage: int, partition: int = 0) -> tuple[StageRunner, Emitted]:
    emitted = Emitted()
    runner = StageRunner(plan, stage, RunnerIdentity("job", partition), emitted)
    runner.open()
    return runner, emitted


def head_of(plan: JobPlan, stage: int = 1) -> int:
    return next(operator.id for operator in plan.stages[stage].operators if not operator.inputs[0].chained)


def test_records_timers_and_watermarks_of_a_keyed_stage() -> None:
    plan = plan_of(counting)
    head = head_of(plan)
    runner, emitted = runner_of(plan, 1)
    runner.begin_epoch(0, "attempt", NOW_MS, {})
    runner.batch(edge_id(head, 0), [1, 2, 3], [10, 20, 30])
    runner.advance(head, 99)
    runner.advance(head, 120)
    outcome = runner.finish_epoch(NOW_MS)
    assert Counter(emitted.records()) == Counter([(1, 1), (0, 1), (1, 2), ("timer", 1, 100), ("timer", 0, 100)])
    assert outcome.watermarks == {"head:count": 120, "out:count": 120}
    assert outcome.records_in == {"count": 3}
    assert outcome.state_entries == 2
    # What timers emit comes before the watermark that fired them.
    assert all(watermark < 120 for watermark, _ in emitted.chunks())
    assert {end[1:] for end in emitted.ends()} == {(120, False, False)}


def test_an_epoch_begins_where_the_last_one_left_the_watermarks() -> None:
    plan = plan_of(counting)
    head = head_of(plan)
    runner, emitted = runner_of(plan, 1)
    runner.begin_epoch(3, "attempt", NOW_MS, {"head:count": 500, "out:count": 500})
    runner.batch(edge_id(head, 0), [1], [10])
    runner.advance(head, 400)  # behind: nothing happens
    outcome = runner.finish_epoch(NOW_MS)
    assert outcome.watermarks == {"head:count": 500, "out:count": 500}
    assert emitted.chunks() == [(500, [(1, 1)])]


def test_the_last_watermark_ends_the_input() -> None:
    plan = plan_of(counting)
    head = head_of(plan)
    runner, emitted = runner_of(plan, 1)
    runner.begin_epoch(0, "attempt", NOW_MS, {})
    runner.batch(edge_id(head, 0), [1], [10])
    runner.advance(head, MAX_WATERMARK)
    runner.finish_epoch(NOW_MS)
    assert ("timer", 1, 100) in emitted.records()
    assert {end[1:] for end in emitted.ends()} == {(MAX_WATERMARK, False, True)}


def test_a_chain_with_several_outputs_does_not_share_its_lists() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        source = env.from_collection([1]).map(lambda n: n)
        odd = source.filter(lambda n: n % 2 == 1)
        return source.map(lambda n: n * 10).union(odd, source.map(lambda n: -n)).rebalance().map(lambda n: n)

    plan = plan_of(build)
    runner, emitted = runner_of(plan, 0)
    source = plan.sources[0]
    runner.begin_epoch(0, "attempt", NOW_MS, {}, source_id=source.id, channel="split")
    runner.source_output(source.id).emit([1, 2, 3], None)
    runner.finish_epoch(NOW_MS, ended=False)
    assert Counter(emitted.records()) == Counter([10, 20, 30, 1, 3, -1, -2, -3])


def test_a_side_output_without_a_reader_is_dropped_and_one_with_two_readers_is_given_to_both() -> None:
    seen, unseen = OutputTag("seen"), OutputTag("unseen")

    class Sort(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            yield value
            yield seen, value
            yield unseen, value

    def build(env: StreamExecutionEnvironment) -> DataStream:
        sorted_ = env.from_collection([1]).process(Sort())
        side = sorted_.get_side_output(seen)
        return side.map(lambda n: ("a", n)).union(side.map(lambda n: ("b", n))).rebalance().map(str)

    plan = plan_of(build)
    runner, emitted = runner_of(plan, 0)
    source = plan.sources[0]
    runner.begin_epoch(0, "attempt", NOW_MS, {}, source_id=source.id, channel="split")
    runner.source_output(source.id).emit([1, 2], None)
    runner.finish_epoch(NOW_MS, ended=True)
    assert Counter(emitted.records()) == Counter([("a", 1), ("a", 2), ("b", 1), ("b", 2)])


def test_an_operator_behind_a_chained_union_has_the_lower_watermark_of_its_inputs() -> None:
    """Two sources in one chain: while a split of one is read, the other counts as idle; each is its own channel."""

    def build(env: StreamExecutionEnvironment) -> DataStream:
        left = env.from_collection([1]).assign_timestamps_and_watermarks(BY_VALUE).name("left")
        right = env.from_collection([1]).assign_timestamps_and_watermarks(BY_VALUE).name("right")
        return left.union(right).map(lambda n: n).rebalance().map(str)

    plan = plan_of(build)
    runner, emitted = runner_of(plan, 0)
    for source in plan.sources:
        runner.restore_split_operators({})
        runner.begin_epoch(0, "attempt", NOW_MS, {}, source_id=source.id, channel=f"split-{source.id}")
        runner.source_output(source.id).emit([100 * source.id + 1], None)
        outcome = runner.finish_epoch(NOW_MS, ended=False)
        assert len(outcome.watermarks) == 3  # source, timestamps, map: not those of the other source
    ends = emitted.ends()
    assert [end[1] for end in ends] == [100 * source.id for source in plan.sources]
    assert len({end[0] for end in ends}) == 2


def test_each_partition_has_a_function_of_its_own() -> None:
    class Where(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.partition = runtime_context.get_index_of_this_subtask()

        def map(self, value: Any) -> Any:
            return self.partition

    def build(env: StreamExecutionEnvironment) -> DataStream:
        return env.from_collection([1]).rebalance().map(Where()).uid("where").global_().map(str)

    plan = plan_of(build, 2)
    runners = [runner_of(plan, 1, partition) for partition in range(2)]
    head = head_of(plan)
    for runner, _ in runners:
        runner.begin_epoch(0, "attempt", NOW_MS, {})
        runner.batch(edge_id(head, 0), ["x"], None)
        runner.finish_epoch(NOW_MS)
    assert [emitted.records() for _, emitted in runners] == [[0], [1]]


def test_a_user_error_names_the_epoch_and_leaves_the_runner_usable_after_abort() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        return env.from_collection([1]).rebalance().map(lambda n: 10 // n).name("divide")

    plan = plan_of(build)
    runner, _ = runner_of(plan, 1)
    head = head_of(plan)
    runner.begin_epoch(4, "a", NOW_MS, {})
    with pytest.raises(UserCodeError) as raised:
        runner.batch(edge_id(head, 0), [5, 0], None)
    assert (raised.value.epoch, raised.value.record_repr) == (4, "0")
    runner.abort_epoch()
    runner.begin_epoch(4, "b", NOW_MS, {})
    runner.batch(edge_id(head, 0), [5], None)
    outcome = runner.finish_epoch(NOW_MS)
    assert sum(len(items) for items in outcome.committables.values()) == 1


def test_a_partition_beyond_an_operators_parallelism_does_not_run_it() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        narrow = env.from_collection([1]).key_by(lambda n: n).process(Counting()).uid("narrow").set_parallelism(1)
        wide = env.from_collection([1]).key_by(lambda n: n).process(Counting()).uid("wide")
        return narrow.union(wide)

    plan = plan_of(build, 2)
    first, _ = runner_of(plan, 1, 0)
    second, _ = runner_of(plan, 1, 1)
    assert first.keyed_backend("narrow") is not None and first.keyed_backend("wide") is not None
    assert second.keyed_backend("narrow") is None and second.keyed_backend("wide") is not None


def test_close_closes_all_functions_and_raises_the_first_error(tmp_path: Path) -> None:
    class Closes(MapFunction):
        def __init__(self, name: str) -> None:
            self.name = name

        def map(self, value: Any) -> Any:
            return value

        def close(self) -> None:
            (tmp_path / self.name).touch()
            if self.name == "first":
                raise RuntimeError("cannot close")

    def build(env: StreamExecutionEnvironment) -> DataStream:
        return env.from_collection([1]).rebalance().map(Closes("first")).map(Closes("second"))

    runner, _ = runner_of(plan_of(build), 1)
    with pytest.raises(Exception, match="cannot close"):
        runner.close()
    assert {path.name for path in tmp_path.iterdir()} == {"first", "second"}


def test_nothing_before_the_first_watermark() -> None:
    plan = plan_of(counting)
    runner, _ = runner_of(plan, 1)
    runner.begin_epoch(0, "attempt", NOW_MS, {})
    outcome = runner.finish_epoch(NOW_MS)
    assert outcome.watermarks == {"head:count": MIN_WATERMARK, "out:count": MIN_WATERMARK}
    assert outcome.next_timer_ms is None


class Remembering(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.STRING()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        self.last.update(value)
        yield value


def test_state_is_checked_against_its_declared_type_unless_that_is_off() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        return env.from_collection([1]).key_by(lambda value: value).process(Remembering()).name("remember")

    for checked in (True, False):
        plan = plan_of(build, **{"headwater.type-check": checked})
        runner, _ = runner_of(plan, 1)
        runner.begin_epoch(4, "attempt", NOW_MS, {})
        runner.batch(edge_id(head_of(plan), 0), [7], None)
        if checked:
            with pytest.raises(TypeMismatchError, match=r"operator 'remember', epoch 4: state 'last' of key 7 "):
                runner.finish_epoch(NOW_MS)
        else:
            assert runner.finish_epoch(NOW_MS).state_entries == 1


class Leaving(KeyedProcessFunction):
    def __init__(self, where: str) -> None:
        self.where = where

    def open(self, runtime_context: RuntimeContext) -> None:
        if self.where == "open":
            sys.exit(3)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        ctx.timer_service().register_event_time_timer(5)
        if self.where == "process":
            sys.exit(3)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> None:
        if self.where == "timer":
            sys.exit("enough")


@pytest.mark.parametrize(
    ("where", "record"),
    [
        ("open", "<none: raised in open()>"),
        ("process", "<one of 2, the first is 7>"),
        ("timer", "<none: the watermark became 9>"),
    ],
)
def test_sys_exit_in_a_function_is_an_error_of_the_function(where: str, record: str) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        return env.from_collection([1]).key_by(lambda value: value).process(Leaving(where)).name("leave").map(str)

    plan = plan_of(build)
    with pytest.raises(UserCodeError) as caught:
        runner, _ = runner_of(plan, 1)
        runner.begin_epoch(0, "attempt", NOW_MS, {})
        runner.batch(edge_id(head_of(plan), 0), [7, 8], [1, 1])
        runner.advance(head_of(plan), 9)
    assert (caught.value.operator_name, caught.value.record_repr) == ("leave", record)
    assert "SystemExit" in caught.value.cause_repr and "sys.exit" in caught.value.user_traceback
