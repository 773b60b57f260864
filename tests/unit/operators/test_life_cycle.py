"""open, close, rollback, snapshot and restore of operators with user functions; operator state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.errors import UserCodeError
from headwater.common.time import Time
from headwater.operators.functions.plain import (
    CheckpointedFunction,
    FunctionInitializationContext,
    KeyedProcessFunction,
    MapFunction,
)
from headwater.operators.functions.runtime_context import RuntimeContext
from headwater.state.descriptors import ListStateDescriptor, ValueStateDescriptor
from headwater.state.ttl.config import StateTtlConfig
from headwater.testing import OneInputOperatorHarness


class Counter(KeyedProcessFunction):
    """Counts per key; a timer per record reports the count of its key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(value[1])
        yield value[0], self.count.value()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield "timer", ctx.get_current_key(), timestamp, self.count.value()


class Recorder(MapFunction):
    """Writes down what is done to it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls.append("open")
        self.seen_in_this_epoch: list[Any] = []

    def close(self) -> None:
        self.calls.append("close")

    def map(self, value: Any) -> Any:
        self.seen_in_this_epoch.append(value)
        return list(self.seen_in_this_epoch)


class Buffer(MapFunction, CheckpointedFunction):
    """Keeps records outside of state and writes them down at the end of the epoch."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.state = context.get_operator_list_state(ListStateDescriptor("buffer"))
        self.buffer = list(self.state.get()) if context.is_restored() else []

    def snapshot_state(self, context: FunctionInitializationContext) -> None:
        self.state.update(self.buffer)

    def map(self, value: Any) -> Any:
        self.buffer.append(value)
        return list(self.buffer)


def test_a_function_is_opened_once_and_closed_once() -> None:
    function = Recorder()
    with OneInputOperatorHarness(function) as harness:
        harness.process_element(1)
        harness.snapshot()
        harness.process_element(2)
    assert function.calls == ["open", "close"]


def test_after_a_failed_epoch_the_function_starts_anew() -> None:
    function = Recorder()
    harness = OneInputOperatorHarness(function)
    harness.process_element("lost")
    harness.fail_epoch()
    harness.process_element("replayed")
    assert function.calls == ["open", "close", "open"]
    assert harness.get_output() == [["replayed"]]


def test_a_failed_epoch_leaves_no_trace_in_state_timers_or_output() -> None:
    harness = OneInputOperatorHarness(Counter(), lambda value: value[0])
    harness.process_element(("a", 10))
    harness.snapshot()
    harness.process_elements([("a", 20), ("b", 30)])
    harness.process_watermark(15)
    harness.fail_epoch()
    assert harness.num_event_time_timers() == 1
    harness.process_element(("a", 20))
    harness.process_watermark(15)
    assert harness.get_output() == [("a", 1), ("a", 2), ("timer", "a", 10, 2)]


def test_a_restored_operator_goes_on_with_state_and_timers() -> None:
    before = OneInputOperatorHarness(Counter(), lambda value: value[0])
    before.process_elements([("a", 10), ("a", 20), ("b", 15)])
    before.process_watermark(12)
    snapshot = before.snapshot()
    after = OneInputOperatorHarness(Counter(), lambda value: value[0]).restore(snapshot)
    after.process_element(("a", 16))
    after.process_watermark(100)
    assert after.get_output() == [
        ("a", 3),
        ("timer", "b", 15, 1),
        ("timer", "a", 16, 3),
        ("timer", "a", 20, 3),
    ]


def test_the_watermark_does_not_go_back_across_a_restore() -> None:
    before = OneInputOperatorHarness(Counter(), lambda value: value[0])
    before.process_watermark(12)
    after = OneInputOperatorHarness(Counter(), lambda value: value[0]).restore(before.snapshot())
    assert after.context.watermark == 12
    with pytest.raises(ValueError, match="cannot go back"):
        after.process_watermark(11)


def test_state_in_two_partitions_is_split_by_key_group() -> None:
    whole = OneInputOperatorHarness(Counter(), lambda value: value[0])
    keys = [f"key-{number}" for number in range(50)]
    whole.process_elements([(key, 10) for key in keys])
    snapshot = whole.snapshot()
    halves = [
        OneInputOperatorHarness(Counter(), lambda value: value[0], partition=partition, parallelism=2).restore(snapshot)
        for partition in range(2)
    ]
    for half in halves:
        half.process_watermark(10)
    found = [value[1] for half in halves for value in half.get_output()]
    assert sorted(found) == sorted(keys)
    assert all(half.get_output() for half in halves)


def test_operator_state_survives_a_restore_and_a_failed_epoch() -> None:
    harness = OneInputOperatorHarness(Buffer())
    harness.process_element(1)
    snapshot = harness.snapshot()
    harness.process_element("lost")
    harness.fail_epoch()
    harness.process_element(2)
    assert harness.get_output() == [[1], [1, 2]]
    restored = OneInputOperatorHarness(Buffer()).restore(snapshot)
    restored.process_element(3)
    assert restored.get_output() == [[1, 3]]


def test_a_first_epoch_that_fails_starts_with_an_empty_buffer_again() -> None:
    harness = OneInputOperatorHarness(Buffer())
    harness.process_element("lost")
    harness.fail_epoch()
    harness.process_element(1)
    assert harness.get_output() == [[1]]


def test_a_failure_in_snapshot_state_says_so() -> None:
    class Broken(Buffer):
        def snapshot_state(self, context: FunctionInitializationContext) -> None:
            raise OSError("disk full")

    with pytest.raises(UserCodeError, match="disk full") as caught:
        OneInputOperatorHarness(Broken()).snapshot()
    assert "snapshot_state()" in caught.value.record_repr


def test_a_close_that_fails_after_a_failed_epoch_does_not_stop_the_replay(caplog: pytest.LogCaptureFixture) -> None:
    class Fragile(Recorder):
        def close(self) -> None:
            raise OSError("connection is gone")

    harness = OneInputOperatorHarness(Fragile(), name="fragile")
    harness.process_element(1)
    harness.fail_epoch()
    harness.process_element(2)
    assert harness.get_output() == [[2]]
    assert "fragile" in caplog.text
    with pytest.raises(UserCodeError, match="connection is gone"):
        harness.close()


def test_there_is_no_key_in_open_not_even_that_of_a_failed_epoch() -> None:
    class Early(Counter):
        opened = 0

        def open(self, runtime_context: RuntimeContext) -> None:
            super().open(runtime_context)
            self.opened += 1
            if self.opened == 2:
                self.count.value()

    harness = OneInputOperatorHarness(Early(), lambda value: value[0])
    harness.process_element(("a", 1))
    with pytest.raises(UserCodeError, match="no current key"):
        harness.fail_epoch()


def test_event_time_ttl_follows_the_timer_that_fires_and_not_the_watermark_of_a_backfill() -> None:
    class Remember(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            descriptor = ValueStateDescriptor("last")
            descriptor.enable_time_to_live(
                StateTtlConfig.new_builder(Time.milliseconds(100))
                .set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.EVENT_TIME)
                .build()
            )
            self.last = runtime_context.get_state(descriptor)

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
            self.last.update(value)
            for delay in (50, 150):
                ctx.timer_service().register_event_time_timer(value[1] + delay)

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
            yield timestamp, self.last.value()

    harness = OneInputOperatorHarness(Remember(), lambda value: value[0])
    harness.process_watermark(1_000)
    harness.process_element(("a", 1_000))
    harness.process_watermark(1_000_000)
    assert harness.get_output() == [(1_050, ("a", 1_000)), (1_150, None)]


def test_the_runtime_context_says_where_it_is() -> None:
    class Ask(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.context = runtime_context

        def map(self, value: Any) -> Any:
            context = self.context
            context.get_metrics_group().counter("seen").inc()
            return {
                "task": context.get_task_name(),
                "with": context.get_task_name_with_subtasks(),
                "index": context.get_index_of_this_subtask(),
                "parallelism": context.get_number_of_parallel_subtasks(),
                "max": context.get_max_number_of_parallel_subtasks(),
                "attempt": context.get_attempt_number(),
                "limit": context.get_job_parameter("limit", "none"),
                "other": context.get_job_parameter("other", "none"),
                "seen": context.get_metrics_group().counter("seen").get_count(),
            }

    harness = OneInputOperatorHarness(
        Ask(), name="ask", partition=2, parallelism=6, max_parallelism=32, job_parameters={"limit": "5"}
    )
    harness.process_element(None)
    assert harness.get_output() == [
        {
            "task": "ask",
            "with": "ask (3/6)",
            "index": 2,
            "parallelism": 6,
            "max": 32,
            "attempt": 0,
            "limit": "5",
            "other": "none",
            "seen": 1,
        }
    ]


records = st.tuples(st.sampled_from("abc"), st.integers(0, 50))
inputs = st.lists(st.one_of(records, st.integers(0, 60).map(lambda watermark: ("watermark", watermark))), max_size=30)


@given(inputs, inputs, inputs)
def test_a_job_that_fails_and_is_restored_gives_what_an_unfailed_one_gives(
    first: list[Any], lost: list[Any], second: list[Any]
) -> None:
    """Epoch `first`, then an attempt `lost` that is given up, then epoch `second` in a restored partition."""

    def feed(harness: OneInputOperatorHarness, items: list[Any]) -> None:
        for item in items:
            if item[0] != "watermark":
                harness.process_element(item, item[1])
            elif item[1] > harness.context.watermark:
                harness.process_watermark(item[1])

    straight = OneInputOperatorHarness(Counter(), lambda value: value[0])
    feed(straight, first + second)

    failing = OneInputOperatorHarness(Counter(), lambda value: value[0])
    feed(failing, first)
    failing.snapshot()
    feed(failing, lost)
    failing.fail_epoch()
    feed(failing, [])
    restored = OneInputOperatorHarness(Counter(), lambda value: value[0]).restore(failing.snapshot())
    feed(restored, second)
    assert failing.get_output_with_timestamps() + restored.get_output_with_timestamps() == (
        straight.get_output_with_timestamps()
    )
    assert restored.num_event_time_timers() == straight.num_event_time_timers()


timer_actions = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from("ab"), st.integers(0, 20)),
        st.tuples(st.just("delete"), st.sampled_from("ab"), st.integers(0, 20)),
        st.tuples(st.just("watermark"), st.just(""), st.integers(0, 25)),
    ),
    max_size=40,
)


@given(timer_actions)
def test_timers_fire_like_those_of_a_simple_model(actions: list[tuple[str, str, int]]) -> None:
    class Timers(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
            service = ctx.timer_service()
            action, _, timestamp = value
            (service.register_event_time_timer if action == "set" else service.delete_event_time_timer)(timestamp)

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
            yield ctx.get_current_key(), timestamp

    harness = OneInputOperatorHarness(Timers(), lambda value: value[1])
    pending: list[tuple[int, str]] = []  # in the order they were set
    expected: list[tuple[str, int]] = []
    reached = -1
    for action, key, timestamp in actions:
        if action != "watermark":
            harness.process_element((action, key, timestamp))
            if action == "set" and (timestamp, key) not in pending:
                pending.append((timestamp, key))
            elif action == "delete" and (timestamp, key) in pending:
                pending.remove((timestamp, key))
        elif timestamp > reached:
            reached = timestamp
            harness.process_watermark(timestamp)
            due = sorted((timer for timer in pending if timer[0] <= timestamp), key=lambda timer: timer[0])
            expected += [(key, at) for at, key in due]
            pending = [timer for timer in pending if timer[0] > timestamp]
    assert harness.get_output() == expected
    assert harness.num_event_time_timers() == len(pending)


@pytest.mark.parametrize(
    ("method", "descriptor", "text"),
    [
        (
            "get_state",
            ListStateDescriptor("l"),
            "get_state() expects a ValueStateDescriptor, found ListStateDescriptor('l'); use get_list_state()",
        ),
        (
            "get_map_state",
            ValueStateDescriptor("v"),
            "get_map_state() expects a MapStateDescriptor, found ValueStateDescriptor('v'); use get_state()",
        ),
        ("get_list_state", "items", "get_list_state() expects a ListStateDescriptor, found 'items'"),
    ],
)
def test_a_descriptor_of_another_kind_is_refused_with_the_right_method(method: str, descriptor: Any, text: str) -> None:
    class Asking(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            getattr(runtime_context, method)(descriptor)

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None: ...

    with pytest.raises(UserCodeError) as caught:
        OneInputOperatorHarness(Asking(), key_selector=lambda value: value).open()
    assert text in str(caught.value)
