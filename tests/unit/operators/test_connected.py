"""map, flat_map and process on two connected streams, keyed and not."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.common.errors import InvalidKeyError, PlanError, UserCodeError
from headwater.common.output_tag import OutputTag
from headwater.operators.functions.connected import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
)
from headwater.operators.functions.time_domain import TimeDomain
from headwater.state.descriptors import ValueStateDescriptor
from headwater.testing import TwoInputOperatorHarness

BY_FIRST = (lambda value: value[0], lambda value: value[0])
LATE = OutputTag("late")


class Tagged(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return None if value == "drop" else ("one", value)

    def map2(self, value: Any) -> Any:
        return None if value == "drop" else ("two", value)


class Repeated(CoFlatMapFunction):
    def flat_map1(self, value: int) -> Any:
        return ["a"] * value

    def flat_map2(self, value: int) -> Any:
        if value:
            yield "b"


class Switch(CoProcessFunction):
    """The second stream says which words of the first one pass; in memory only."""

    def __init__(self) -> None:
        self.allowed: set[str] = set()

    def process_element1(self, value: str, ctx: CoProcessFunction.Context) -> Any:
        if value in self.allowed:
            yield value, ctx.timestamp(), ctx.timer_service().current_watermark() >= 100
        else:
            yield LATE, value

    def process_element2(self, value: str, ctx: CoProcessFunction.Context) -> Any:
        self.allowed.add(value)


class RunningTotal(CoMapFunction):
    """Both streams share the state of a key."""

    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))

    def map1(self, value: tuple[str, int]) -> Any:
        self.total.update((self.total.value() or 0) + value[1])
        return value[0], self.total.value()

    def map2(self, value: tuple[str, int]) -> Any:
        return self.map1((value[0], -value[1]))


class Totals(CoFlatMapFunction):
    def __init__(self) -> None:
        self.inner = RunningTotal()

    def open(self, runtime_context: Any) -> None:
        self.inner.open(runtime_context)

    def flat_map1(self, value: Any) -> Any:
        return [self.inner.map1(value)]

    def flat_map2(self, value: Any) -> Any:
        yield self.inner.map2(value)


class PayWithin(KeyedCoProcessFunction):
    """An order (stream 1) must be paid (stream 2) within 100 ms."""

    def open(self, runtime_context: Any) -> None:
        self.ordered_at = runtime_context.get_state(ValueStateDescriptor("ordered at"))

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        self.ordered_at.update(ctx.timestamp())
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 100)  # type: ignore[operator]

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        if value[1] < 0:
            raise ValueError("negative payment")
        if self.ordered_at.value() is None:
            yield LATE, value
        else:
            ctx.timer_service().delete_event_time_timer(self.ordered_at.value() + 100)
            self.ordered_at.clear()
            yield "paid", ctx.get_current_key()

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Any:
        assert ctx.time_domain() is TimeDomain.EVENT_TIME
        self.ordered_at.clear()
        yield "cancelled", ctx.get_current_key()


def test_map_calls_the_method_of_the_stream_and_drops_none_with_its_timestamp() -> None:
    harness = TwoInputOperatorHarness(Tagged())
    harness.process_elements1(["a", "drop", "b"], [1, 2, 3])
    harness.process_elements2(["drop"], [4])
    harness.process_elements2(["c", "drop"])
    assert harness.get_output_with_timestamps() == [(("one", "a"), 1), (("one", "b"), 3), (("two", "c"), None)]


def test_flat_map_gives_each_result_its_records_timestamp() -> None:
    harness = TwoInputOperatorHarness(Repeated())
    harness.process_elements1([2, 0], [10, 20])
    harness.process_elements2([0, 1], [30, 40])
    harness.process_elements2([1])
    assert harness.get_output_with_timestamps() == [("a", 10), ("a", 10), ("b", 40), ("b", None)]


def test_process_sees_timestamps_clocks_and_side_outputs() -> None:
    harness = TwoInputOperatorHarness(Switch())
    harness.process_element1("x", 5)
    harness.process_element2("x", 6)
    harness.process_watermark1(100)
    harness.process_element1("x", 7)
    harness.process_watermark2(120)
    harness.process_elements1(["x", "y"], [130, 131])
    assert harness.get_output_with_timestamps() == [(("x", 7, False), 7), (("x", 130, True), 130)]
    assert harness.get_side_output(LATE) == ["x", "y"]
    assert harness.get_watermarks() == [100]


@pytest.mark.parametrize("function", [RunningTotal(), Totals()])
def test_keyed_functions_share_state_between_the_streams(function: Any) -> None:
    harness = TwoInputOperatorHarness(function, BY_FIRST)
    harness.process_elements1([("a", 5), ("b", 7)])
    harness.process_elements2([("a", 3)], [1])
    assert harness.get_output() == [("a", 5), ("b", 7), ("a", 2)]


def test_a_co_process_function_may_use_state_on_keyed_streams() -> None:
    class Seen(CoProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

        def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
            yield value, self.seen.value()

        def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
            self.seen.update(value)

    harness = TwoInputOperatorHarness(Seen(), (abs, abs))
    harness.process_element2(-3)
    harness.process_elements1([3, 4])
    harness.end_input()
    assert harness.get_output() == [(3, -3), (4, None)]


def test_timers_follow_the_lower_watermark() -> None:
    harness = TwoInputOperatorHarness(PayWithin(), BY_FIRST)
    harness.process_elements1([("ann", 1), ("bob", 1)], [0, 10])
    harness.process_watermark1(1000)
    harness.process_element2(("bob", 5), 50)
    assert harness.num_event_time_timers() == 1
    assert harness.get_output() == [("paid", "bob")]
    harness.process_watermark2(99)
    harness.process_watermark2(100)
    assert harness.get_output_with_timestamps() == [(("paid", "bob"), 50), (("cancelled", "ann"), 100)]
    harness.process_element2(("ann", 5), 101)
    assert harness.get_side_output(LATE) == [("ann", 5)]
    assert harness.num_keyed_state_entries() == 0


def test_restored_at_another_parallelism() -> None:
    whole = TwoInputOperatorHarness(PayWithin(), BY_FIRST)
    names = [f"user-{number}" for number in range(20)]
    whole.process_elements1([(name, 1) for name in names], [0] * 20)
    snapshot = whole.snapshot()
    outcome = []
    for partition in range(3):
        part = TwoInputOperatorHarness(PayWithin(), BY_FIRST, partition=partition, parallelism=3).restore(snapshot)
        for name in names[:10]:
            try:
                part.process_element2((name, 1), 50)
            except InvalidKeyError:
                continue  # another partition's
        part.process_watermark(100)
        outcome += part.get_output()
    expected = [("paid", name) for name in names[:10]] + [("cancelled", name) for name in names[10:]]
    assert sorted(outcome) == sorted(expected)


def test_a_failed_epoch_leaves_no_trace() -> None:
    harness = TwoInputOperatorHarness(PayWithin(), BY_FIRST)
    harness.process_element1(("ann", 1), 0)
    harness.snapshot()
    harness.process_element2(("ann", 1), 50)
    with pytest.raises(UserCodeError, match=r"negative payment(.|\n)*record: \('ann', -1\)"):
        harness.process_element2(("ann", -1), 60)
    harness.fail_epoch()
    assert harness.get_output() == []
    harness.process_watermark(100)
    assert harness.get_output() == [("cancelled", "ann")]


def test_a_bad_key_of_either_stream_is_named() -> None:
    harness = TwoInputOperatorHarness(RunningTotal(), BY_FIRST)
    with pytest.raises(InvalidKeyError, match="record"):
        harness.process_element1(([float("nan")], 1))
    with pytest.raises(InvalidKeyError, match="record"):
        harness.process_element2((float("nan"), 1))


def test_lists_are_keys_of_either_stream() -> None:
    harness = TwoInputOperatorHarness(RunningTotal(), BY_FIRST)
    harness.process_element1((["list"], 1))
    harness.process_element2((["list"], 2))
    harness.process_element1((("list",), 4))
    assert harness.num_keyed_state_entries() == 2


def test_the_harness_refuses_what_a_job_would() -> None:
    with pytest.raises(PlanError, match="key_selectors"):
        TwoInputOperatorHarness(PayWithin())
    with pytest.raises(PlanError, match="two inputs"):
        TwoInputOperatorHarness(lambda left, right: None)
