"""process on unkeyed and keyed streams: contexts, timers, side outputs, errors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from headwater.common.errors import InvalidKeyError, TypeMismatchError, UserCodeError
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.common.output_tag import OutputTag
from headwater.common.types import Row
from headwater.operators.functions.plain import KeyedProcessFunction, ProcessFunction
from headwater.operators.functions.runtime_context import RuntimeContext
from headwater.operators.functions.time_domain import TimeDomain
from headwater.operators.process import KeyedProcessOperator, ProcessOperator
from headwater.state.descriptors import ValueStateDescriptor
from headwater.testing import EmittedWatermark, OneInputOperatorHarness, Record

LATE = OutputTag("late")
Body = Callable[[Any, Any], Iterable[Any] | None]


class Scripted(KeyedProcessFunction):
    """Runs the functions it is given."""

    def __init__(self, process: Body, on_timer: Callable[[int, Any], Iterable[Any] | None] | None = None) -> None:
        self._process = process
        self._on_timer = on_timer

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any] | None:
        return self._process(value, ctx)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        return None if self._on_timer is None else self._on_timer(timestamp, ctx)


def by_key(process: Body, on_timer: Any = None, **options: Any) -> OneInputOperatorHarness:
    return OneInputOperatorHarness(Scripted(process, on_timer), lambda value: value[0], **options)


def set_event_timer(value: Any, ctx: Any) -> None:
    ctx.timer_service().register_event_time_timer(value[1])


def set_processing_timer(value: Any, ctx: Any) -> None:
    ctx.timer_service().register_processing_time_timer(value[1])


def report(timestamp: int, ctx: Any) -> Iterator[Any]:
    yield ctx.get_current_key(), timestamp, ctx.time_domain(), ctx.timestamp()


# -- records ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keyed", [False, True])
def test_results_have_the_timestamp_of_their_record(keyed: bool) -> None:
    def repeat(value: Any, ctx: Any) -> Iterator[Any]:
        for _ in range(value[1]):
            yield value[0], ctx.timestamp()

    harness = by_key(repeat) if keyed else OneInputOperatorHarness(ProcessOperator(repeat))
    harness.process_elements([("a", 2), ("b", 0), ("c", 1)], [10, 20, None])
    harness.process_elements([("d", 1)])
    expected = [(("a", 10), 10), (("a", 10), 10), (("c", None), None), (("d", None), None)]
    assert harness.get_output_with_timestamps() == expected


@pytest.mark.parametrize("result", [None, [], (), False], ids=repr)
def test_nothing_may_be_said_in_several_ways(result: Any) -> None:
    harness = by_key(lambda value, ctx: result)
    harness.process_elements([("a", 1)], [5])
    assert harness.get_output() == []


def test_a_result_that_is_not_iterable_is_the_users_error() -> None:
    harness = by_key(lambda value, ctx: 42)
    with pytest.raises(UserCodeError, match="not iterable") as caught:
        harness.process_element(("a", 1))
    assert caught.value.record_repr == "('a', 1)"


def test_state_belongs_to_the_key() -> None:
    class Total(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.total = runtime_context.get_state(ValueStateDescriptor("total"))

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
            self.total.update((self.total.value() or 0) + value[1])
            yield ctx.get_current_key(), self.total.value()

    harness = OneInputOperatorHarness(Total(), lambda value: value[0])
    harness.process_elements([("a", 1), ("b", 10), ("a", 2)])
    assert harness.get_output() == [("a", 1), ("b", 10), ("a", 3)]


def test_the_clocks_are_the_epochs_time_and_the_watermark() -> None:
    def clocks(value: Any, ctx: Any) -> Iterator[Any]:
        service = ctx.timer_service()
        yield service.current_processing_time(), service.current_watermark()

    harness = by_key(clocks)
    harness.process_element(("a", 1))
    harness.set_processing_time(1_000)
    harness.process_watermark(77)
    harness.process_element(("a", 1))
    assert harness.get_output() == [(0, MIN_WATERMARK), (1_000, 77)]


@pytest.mark.parametrize(
    "method",
    [
        "register_event_time_timer",
        "register_processing_time_timer",
        "delete_event_time_timer",
        "delete_processing_time_timer",
    ],
)
def test_timers_need_a_keyed_stream(method: str) -> None:
    class Wrong(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> None:
            getattr(ctx.timer_service(), method)(1)

    with pytest.raises(UserCodeError, match="key_by"):
        OneInputOperatorHarness(Wrong()).process_element(1)


def test_keyed_state_needs_a_keyed_stream() -> None:
    class Wrong(ProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            runtime_context.get_state(ValueStateDescriptor("total"))

        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> None:
            return None

    with pytest.raises(UserCodeError, match=r"'total'.*key_by"):
        OneInputOperatorHarness(Wrong()).open()


# -- side outputs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timestamps", [None, [1, 2, 3]])
def test_side_outputs_are_told_from_results(timestamps: list[int] | None) -> None:
    def split(value: Any, ctx: Any) -> Iterator[Any]:
        if value[1] < 0:
            yield LATE, value
        else:
            yield value

    harness = by_key(split)
    harness.process_elements([("a", 1), ("b", -1), ("c", 2)], timestamps)
    assert harness.get_output() == [("a", 1), ("c", 2)]
    assert harness.get_side_output(LATE) == [("b", -1)]
    stamps = {step.value: step.timestamp for step in harness.get_steps() if isinstance(step, Record)}
    expected = timestamps or [None, None, None]
    assert stamps == {("a", 1): expected[0], ("b", -1): expected[1], ("c", 2): expected[2]}


def test_a_timer_may_write_to_a_side_output() -> None:
    harness = by_key(set_event_timer, lambda timestamp, ctx: [(LATE, timestamp), timestamp])
    harness.process_element(("a", 5))
    harness.process_watermark(5)
    assert harness.get_output() == [5]
    assert harness.get_side_output(LATE) == [5]


def test_tuples_that_only_look_like_side_outputs_are_results() -> None:
    results = [(), ("late", 1), (None, LATE), [LATE, 1]]
    harness = by_key(lambda value, ctx: results)
    harness.process_element(("a", 1))
    assert harness.get_output() == results


def test_a_side_output_of_several_values_says_how_to_write_it() -> None:
    harness = by_key(lambda value, ctx: [(LATE, 1, 2)])
    with pytest.raises(TypeMismatchError, match=r"yield tag, \(a, b\)"):
        harness.process_element(("a", 1))


# -- event-time timers ------------------------------------------------------------------------------------------------


def test_event_time_timers_fire_in_order_and_before_the_watermark() -> None:
    harness = by_key(set_event_timer, report)
    harness.process_elements([("a", 30), ("b", 10), ("c", 20), ("d", 99)])
    harness.process_watermark(30)
    event = TimeDomain.EVENT_TIME
    assert harness.get_steps() == [
        Record(("b", 10, event, 10), 10),
        Record(("c", 20, event, 20), 20),
        Record(("a", 30, event, 30), 30),
        EmittedWatermark(30),
    ]
    assert harness.num_event_time_timers() == 1


def test_timers_of_one_timestamp_fire_in_the_order_they_were_set() -> None:
    harness = by_key(set_event_timer, lambda timestamp, ctx: [ctx.get_current_key()])
    harness.process_elements([(key, 7) for key in "dacb"])
    harness.process_watermark(7)
    assert harness.get_output() == list("dacb")


def test_a_timer_set_twice_fires_once_and_a_deleted_one_never() -> None:
    def body(value: Any, ctx: Any) -> None:
        service = ctx.timer_service()
        (service.delete_event_time_timer if value[1] < 0 else service.register_event_time_timer)(abs(value[1]))

    harness = by_key(body, report)
    harness.process_elements([("a", 5), ("a", 5), ("a", 6), ("b", 6), ("a", -6)])
    harness.process_watermark(10)
    assert [(key, timestamp) for key, timestamp, _, _ in harness.get_output()] == [("a", 5), ("b", 6)]


def test_timers_set_by_timers_fire_with_the_same_watermark_in_order() -> None:
    def every_ten(timestamp: int, ctx: Any) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(timestamp + 10)
        yield ctx.get_current_key(), timestamp

    harness = by_key(set_event_timer, every_ten)
    harness.process_elements([("a", 10), ("b", 15)])
    harness.process_watermark(34)
    assert harness.get_output() == [("a", 10), ("b", 15), ("a", 20), ("b", 25), ("a", 30)]
    assert harness.num_event_time_timers() == 2


def test_a_timer_behind_the_watermark_fires_with_the_next_one() -> None:
    harness = by_key(set_event_timer, lambda timestamp, ctx: [timestamp])
    harness.process_watermark(100)
    harness.process_element(("a", 50))
    assert harness.get_output() == []
    harness.process_watermark(101)
    assert harness.get_output() == [50]


def test_on_timer_sees_the_new_watermark_already() -> None:
    harness = by_key(set_event_timer, lambda timestamp, ctx: [ctx.timer_service().current_watermark()])
    harness.process_element(("a", 5))
    harness.process_watermark(8)
    assert harness.get_output() == [8]


def test_the_end_of_input_fires_all_event_time_timers() -> None:
    harness = by_key(set_event_timer, lambda timestamp, ctx: [timestamp])
    harness.process_elements([("a", 5), ("b", 10**15)])
    harness.end_input()
    assert harness.get_output() == [5, 10**15]
    assert harness.get_watermarks() == [MAX_WATERMARK]


def test_many_timers_at_once_lose_nothing() -> None:
    harness = by_key(set_event_timer, lambda timestamp, ctx: [timestamp])
    harness.process_elements([("a", timestamp) for timestamp in range(10_000)])
    harness.end_input()
    assert harness.get_output() == list(range(10_000))


# -- processing-time timers -------------------------------------------------------------------------------------------


def test_processing_time_timers_fire_when_the_clock_reaches_them() -> None:
    harness = by_key(set_processing_timer, report)
    harness.process_elements([("a", 200), ("b", 100)])
    assert harness.operator.next_processing_timer() == 100
    harness.set_processing_time(99)
    assert harness.get_output() == []
    harness.advance_processing_time(101)
    processing = TimeDomain.PROCESSING_TIME
    assert harness.get_output() == [("b", 100, processing, 100), ("a", 200, processing, 200)]
    assert harness.operator.next_processing_timer() is None


def test_streaming_drops_processing_time_timers_at_the_end_and_batch_fires_them() -> None:
    for batch_mode, expected in ((False, []), (True, [50])):
        harness = by_key(set_processing_timer, lambda timestamp, ctx: [timestamp], batch_mode=batch_mode)
        harness.process_element(("a", 50))
        harness.end_input()
        assert harness.get_output() == expected


@pytest.mark.parametrize("timestamp", ["soon", None, 1.5, float("nan"), float("inf"), True], ids=repr)
def test_a_timer_needs_a_whole_number(timestamp: Any) -> None:
    harness = by_key(set_event_timer)
    with pytest.raises(UserCodeError, match="whole number of milliseconds"):
        harness.process_element(("a", timestamp))


def test_a_whole_float_will_do_for_a_timer() -> None:
    harness = by_key(set_event_timer, lambda timestamp, ctx: [timestamp])
    harness.process_element(("a", 10 / 2))
    harness.process_watermark(5)
    assert harness.get_output() == [5]
    assert type(harness.get_output()[0]) is int


# -- errors -----------------------------------------------------------------------------------------------------------


def test_a_failure_in_on_timer_names_timer_and_key() -> None:
    def fail(timestamp: int, ctx: Any) -> None:
        raise ZeroDivisionError("in the timer")

    harness = by_key(set_event_timer, fail, name="alerts")
    harness.process_element(("ann", 5))
    with pytest.raises(UserCodeError, match="in the timer") as caught:
        harness.process_watermark(10)
    assert caught.value.operator_name == "alerts"
    assert caught.value.record_repr == "<timer at 5 (EVENT_TIME) of key 'ann'>"


@pytest.mark.parametrize("key", [float("nan"), (1, float("nan")), [float("nan")]], ids=repr)
def test_a_key_that_cannot_be_one_is_refused(key: Any) -> None:
    harness = by_key(lambda value, ctx: [value], name="totals")
    with pytest.raises(InvalidKeyError, match="totals") as caught:
        harness.process_element((key, "the record"))
    assert "the record" in str(caught.value)


@pytest.mark.parametrize("key", [["a", 1], {"a": [1]}, ("a", [1]), {1}, Row(x=[1])], ids=repr)
def test_a_key_that_can_be_changed_is_frozen(key: Any) -> None:
    class CountAndSpoil(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.count = runtime_context.get_state(ValueStateDescriptor("count"))

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            assert ctx.get_current_key() == key
            if isinstance(value[0], (list, Row)):
                value[0][0] = "spoiled"  # the record's, not the key
            self.count.update((self.count.value() or 0) + 1)
            ctx.timer_service().register_event_time_timer(10)
            yield self.count.value()

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
            yield ctx.get_current_key() == key, self.count.value()

    harness = OneInputOperatorHarness(CountAndSpoil(), lambda value: value[0])
    for _ in range(2):
        harness.process_element(copy.deepcopy((key, 1)))
    restored = OneInputOperatorHarness(CountAndSpoil(), lambda value: value[0])
    restored.restore(harness.snapshot())
    restored.process_element(copy.deepcopy((key, 1)))
    restored.process_watermark(10)
    assert harness.get_output() == [1, 2] and restored.get_output() == [3, (True, 3)]


@pytest.mark.parametrize("timestamps", [None, [1]])
def test_the_operator_itself_refuses_such_keys_too(timestamps: list[int | None] | None) -> None:
    class Touch(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.state = runtime_context.get_state(ValueStateDescriptor("state"))

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
            self.state.update(value)

    operator = KeyedProcessOperator(lambda value: value[0], Touch())
    harness = OneInputOperatorHarness(operator, name="totals")
    harness.open()
    with pytest.raises(InvalidKeyError, match="totals") as caught:
        operator.process_batch([(float("nan"), "the record")], timestamps)
    assert "the record" in str(caught.value)


def test_a_key_selector_that_fails_is_the_users_error() -> None:
    harness = OneInputOperatorHarness(Scripted(lambda value, ctx: None), lambda value: value["user"])
    with pytest.raises(UserCodeError, match="KeyError") as caught:
        harness.process_element({"usr": 1})
    assert caught.value.record_repr == "{'usr': 1}"


def test_a_type_error_of_the_user_is_not_taken_for_a_bad_key() -> None:
    harness = by_key(lambda value, ctx: [value[1] + "text"])
    with pytest.raises(UserCodeError):
        harness.process_element(("a", 1))
