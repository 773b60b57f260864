"""Windows through the API and the harness: each assigner, trigger, evictor and kind of function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from headwater.common import Time
from headwater.common.errors import InvalidKeyError, PlanError, StateError, TimestampError, UserCodeError
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.datastream import (
    AggregateFunction,
    AllWindowFunction,
    DataStream,
    OutputTag,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from headwater.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from headwater.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountTrigger,
    CountTumblingWindowAssigner,
    CountWindow,
    DeltaEvictor,
    DeltaFunction,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    Evictor,
    GlobalWindow,
    GlobalWindows,
    MergingWindowAssigner,
    NeverTrigger,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeEvictor,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    Window,
    WindowAssigner,
)
from headwater.operators.window.aligned import AlignedWindowOperator
from headwater.operators.window.operator import WindowOperator
from headwater.operators.window.sliced import SlicedWindowOperator, can_merge
from headwater.testing import OneInputOperatorHarness

LATE = OutputTag("late")


def harness_of(build: Callable[[DataStream], DataStream], **options: Any) -> OneInputOperatorHarness:
    """The window operator that `build` adds to a stream."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    stream = build(env.from_collection([("a", 1)]))
    stream.print()
    operators = [operator for stage in env._plan("job")[0].stages for operator in stage.operators]
    harness = OneInputOperatorHarness(operators[0].factory(), **{"name": operators[0].name, **options})
    harness.open()
    return harness


def keyed(assigner: WindowAssigner[Any, Any], build: Callable[[Any], DataStream], **options: Any) -> Any:
    return harness_of(lambda stream: build(stream.key_by(lambda value: value[0]).window(assigner)), **options)


def feed(harness: OneInputOperatorHarness, *records: tuple[str, int, int]) -> None:
    """Records (key, number, timestamp)."""
    harness.process_elements([record[:2] for record in records], [record[2] for record in records])


def add(one: Any, other: Any) -> Any:
    return one[0], one[1] + other[1]


class Add(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return add(value1, value2)


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Show(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        yield key, (window.start, window.end), list(inputs)


class ShowWithContext(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        window = context.window()
        yield key, (window.start, window.end), list(elements), context.current_watermark()


def show(key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
    return [(key, window, [number for _, number in inputs])]


def numbers(key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
    yield [number for _, number in elements]


TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(10))

# -- functions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda w: w.reduce(add), [("a", 3), ("b", 5)]),
        (lambda w: w.reduce(Add()), [("a", 3), ("b", 5)]),
        (lambda w: w.reduce(add, Show()), [("a", (0, 10), [("a", 3)]), ("b", (0, 10), [("b", 5)])]),
        (
            lambda w: w.reduce(add, ShowWithContext()),
            [("a", (0, 10), [("a", 3)], 9), ("b", (0, 10), [("b", 5)], 9)],
        ),
        (lambda w: w.aggregate(Mean()), [1.5, 5.0]),
        (lambda w: w.aggregate(Mean(), Show()), [("a", (0, 10), [1.5]), ("b", (0, 10), [5.0])]),
        (lambda w: w.aggregate(Mean(), ShowWithContext()), [("a", (0, 10), [1.5], 9), ("b", (0, 10), [5.0], 9)]),
        (lambda w: w.apply(Show()), [("a", (0, 10), [("a", 1), ("a", 2)]), ("b", (0, 10), [("b", 5)])]),
        (lambda w: w.apply(show), [("a", TimeWindow(0, 10), [1, 2]), ("b", TimeWindow(0, 10), [5])]),
        (lambda w: w.process(numbers), [[1, 2], [5]]),
        (
            lambda w: w.process(ShowWithContext()),
            [("a", (0, 10), [("a", 1), ("a", 2)], 9), ("b", (0, 10), [("b", 5)], 9)],
        ),
        (lambda w: w.process(lambda key, context, elements: None), []),
    ],
)
@pytest.mark.parametrize("trigger", [None, ContinuousEventTimeTrigger(100)], ids=["aligned", "with timers"])
def test_functions(build, expected, trigger) -> None:
    harness = keyed(TUMBLING, lambda windowed: build(windowed.trigger(trigger) if trigger else windowed))
    assert type(harness.operator) is (WindowOperator if trigger else AlignedWindowOperator)
    feed(harness, ("a", 1, 1), ("b", 5, 2), ("a", 2, 9))
    harness.process_watermark(8)
    assert harness.get_output() == []
    harness.process_watermark(9)
    assert harness.get_output_with_timestamps() == [(result, 9) for result in expected]
    assert harness.num_keyed_state_entries() == harness.num_event_time_timers() == 0


class ShowAll(AllWindowFunction[Any, Any, Any]):
    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        yield window, list(inputs)


class ShowAllWithContext(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        count = context.global_state().get_state(ValueStateDescriptor("count"))
        count.update((count.value() or 0) + 1)
        yield context.window(), list(elements), count.value()


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda w: w.reduce(add), [("a", 8)]),
        (lambda w: w.reduce(add, ShowAll()), [(TimeWindow(0, 10), [("a", 8)])]),
        (lambda w: w.aggregate(Mean(), ShowAllWithContext()), [(TimeWindow(0, 10), [8 / 3], 1)]),
        (lambda w: w.apply(ShowAll()), [(TimeWindow(0, 10), [("a", 1), ("b", 5), ("a", 2)])]),
        (lambda w: w.apply(lambda window, inputs: [len(inputs)]), [3]),
        (lambda w: w.process(lambda context, elements: [len(elements)]), [3]),
    ],
)
def test_functions_of_streams_that_are_not_keyed(build, expected) -> None:
    harness = harness_of(lambda stream: build(stream.window_all(TUMBLING)))
    feed(harness, ("a", 1, 1), ("b", 5, 2), ("a", 2, 9))
    harness.process_watermark(9)
    assert harness.get_output() == expected


class CountFirings(ProcessWindowFunction[Any, Any, Any, Any]):
    """Counts per window and per key, and clears what belongs to the window."""

    per_window = ReducingStateDescriptor("count", lambda one, other: one + other)
    per_key = ReducingStateDescriptor("count", lambda one, other: one + other)

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        found = []
        for store in (context.window_state(), context.global_state()):
            count = store.get_reducing_state(self.per_window)
            count.add(1)
            found.append(count.get())
        yield (key, *found)

    def clear(self, context: Any) -> None:
        context.window_state().get_reducing_state(self.per_window).clear()


@pytest.mark.parametrize("assigner", [TUMBLING, SlidingEventTimeWindows.of(10, 10)], ids=repr)
@pytest.mark.parametrize("kind", ["process", "reduce", "aggregate"])
@pytest.mark.parametrize("trigger", [EventTimeTrigger(), ContinuousEventTimeTrigger(100)])
def test_state_of_the_window_and_of_the_key(assigner, kind, trigger) -> None:
    def build(windowed: Any) -> DataStream:
        windowed = windowed.trigger(trigger).allowed_lateness(5)
        if kind == "process":
            return windowed.process(CountFirings())
        return windowed.reduce(add, CountFirings()) if kind == "reduce" else windowed.aggregate(Mean(), CountFirings())

    harness = keyed(assigner, build)
    feed(harness, ("a", 1, 1))
    harness.process_watermark(9)
    feed(harness, ("a", 1, 2), ("a", 1, 15))
    harness.process_watermark(19)
    assert harness.get_output() == [("a", 1, 1), ("a", 2, 2), ("a", 1, 3)]
    harness.process_watermark(30)
    assert harness.num_keyed_state_entries() == 1, "the state of the key alone"


def test_every_kind_of_state_in_the_context() -> None:
    class All(ProcessWindowFunction[Any, Any, Any, Any]):
        def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
            for store in (context.window_state(), context.global_state()):
                store.get_state(ValueStateDescriptor("v")).update(1)
                store.get_list_state(ListStateDescriptor("l")).add(2)
                store.get_map_state(MapStateDescriptor("m")).put("k", 3)
                store.get_aggregating_state(AggregatingStateDescriptor("a", Mean())).add(("x", 4))
                yield (
                    store.get_state(ValueStateDescriptor("v")).value(),
                    list(store.get_list_state(ListStateDescriptor("l"))),
                    store.get_map_state(MapStateDescriptor("m")).get("k"),
                    store.get_aggregating_state(AggregatingStateDescriptor("a", Mean())).get(),
                )

    harness = keyed(TUMBLING, lambda windowed: windowed.process(All()))
    feed(harness, ("a", 1, 1))
    harness.process_watermark(9)
    assert harness.get_output() == [(1, [2], 3, 4.0)] * 2


def test_session_windows_have_no_state_of_their_own() -> None:
    harness = keyed(EventTimeSessionWindows.with_gap(10), lambda windowed: windowed.process(CountFirings()))
    feed(harness, ("a", 1, 1))
    with pytest.raises(UserCodeError, match=r"use global_state\(\)"):
        harness.process_watermark(100)


def test_side_outputs_of_a_window_function() -> None:
    small = OutputTag("small")

    def split(key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        for _, number in elements:
            yield number if number > 5 else (small, number)

    harness = keyed(TUMBLING, lambda windowed: windowed.process(split))
    feed(harness, ("a", 1, 1), ("a", 9, 1))
    harness.process_watermark(9)
    assert (harness.get_output(), harness.get_side_output(small)) == ([9], [1])


def test_both_functions_are_opened_and_closed() -> None:
    calls: list[str] = []

    class OpenAdd(Add):
        def open(self, runtime_context: Any) -> None:
            calls.append("open reduce")

        def close(self) -> None:
            calls.append("close reduce")

    class OpenShow(Show):
        def open(self, runtime_context: Any) -> None:
            calls.append(f"open show in {runtime_context.get_task_name()}")

        def close(self) -> None:
            calls.append("close show")

    harness = OneInputOperatorHarness(
        keyed(TUMBLING, lambda windowed: windowed.reduce(OpenAdd(), OpenShow())).operator, name="sums"
    )
    calls.clear()
    with harness:
        pass
    assert calls == ["open reduce", "open show in sums", "close show", "close reduce"]


def test_a_result_does_not_share_with_the_window() -> None:
    """Late records fire the window again: what was done to its first result must not show."""

    def put(one: Any, other: Any) -> Any:
        one[1].extend(other[1])
        return one

    for trigger in (EventTimeTrigger(), ContinuousEventTimeTrigger(100)):
        harness = keyed(TUMBLING, lambda w, t=trigger: w.trigger(t).allowed_lateness(100).reduce(put))
        harness.process_elements([["a", [1]]], [1])
        harness.process_watermark(9)
        harness.get_output()[0][1].append("changed downstream")
        harness.process_elements([["a", [2]]], [1])
        assert harness.get_output()[-1] == ["a", [1, 2]]


def test_windows_that_overlap_do_not_share_records() -> None:
    def put(one: Any, other: Any) -> Any:
        one[1].extend(other[1])
        return one

    harness = keyed(SlidingEventTimeWindows.of(20, 10), lambda windowed: windowed.reduce(put))
    harness.process_elements([["a", [1]], ["a", [2]]], [15, 25])
    harness.process_watermark(MAX_WATERMARK)
    assert harness.get_output() == [["a", [1]], ["a", [1, 2]], ["a", [2]]]


# -- assigners --------------------------------------------------------------------------------------------------------


def test_tumbling_windows_with_an_offset() -> None:
    harness = keyed(TumblingEventTimeWindows.of(10, -3), lambda windowed: windowed.apply(show))
    feed(harness, ("a", 1, 6), ("a", 2, 7), ("a", 3, 16), ("a", 4, 17))
    harness.process_watermark(MAX_WATERMARK)
    windows = [((window.start, window.end), found) for _, window, found in harness.get_output()]
    assert windows == [((-3, 7), [1]), ((7, 17), [2, 3]), ((17, 27), [4])]


def test_sliding_windows_share_slices_when_the_aggregate_can_merge() -> None:
    assigner = SlidingEventTimeWindows.of(60, 10)
    harness = keyed(assigner, lambda windowed: windowed.aggregate(Mean(), Show()))
    assert type(harness.operator) is SlicedWindowOperator
    feed(harness, ("a", 1, 5), ("a", 3, 15), ("a", 5, 15))
    assert harness.num_keyed_state_entries() == 2, "two slices, not twelve windows"
    harness.process_watermark(MAX_WATERMARK)
    means = [(window[0], result) for _, window, (result,) in harness.get_output()]
    assert means == [(-50, 1.0), (-40, 3.0), (-30, 3.0), (-20, 3.0), (-10, 3.0), (0, 3.0), (10, 4.0)]
    assert harness.num_keyed_state_entries() == 0


class _Stub(Mean):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise NotImplementedError


class _Pass(Mean):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        pass


class _First(Mean):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a


class _Nested(Mean):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return [acc_a[i] + acc_b[i] for i in range(2)]


@pytest.mark.parametrize(
    ("function", "expected"), [(Mean(), True), (_Nested(), True), (_Stub(), False), (_Pass(), False), (_First(), False)]
)
def test_a_merge_that_is_a_stub_is_not_called(function, expected) -> None:
    assert can_merge(function) is expected
    harness = keyed(SlidingEventTimeWindows.of(20, 10), lambda windowed: windowed.aggregate(function))
    feed(harness, ("a", 1, 15), ("a", 3, 25))
    harness.process_watermark(MAX_WATERMARK)
    assert harness.get_output() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("function", ["reduce", "process"])
def test_processing_time_windows(function) -> None:
    def build(windowed: Any) -> DataStream:
        return windowed.reduce(add) if function == "reduce" else windowed.process(numbers)

    harness = keyed(TumblingProcessingTimeWindows.of(10), build)
    harness.set_processing_time(1005)
    harness.process_elements([("a", 1), ("a", 2)])
    assert harness.operator.next_processing_timer() == 1009
    harness.set_processing_time(1008)
    assert harness.get_output() == []
    harness.set_processing_time(1009)
    assert harness.get_output_with_timestamps() == [(("a", 3) if function == "reduce" else [1, 2], 1009)]
    assert harness.operator.next_processing_timer() is None


def test_sliding_processing_time_windows_survive_a_restore() -> None:
    def build(windowed: Any) -> DataStream:
        return windowed.aggregate(Mean())

    assigner = SlidingProcessingTimeWindows.of(20, 10)
    harness = keyed(assigner, build)
    harness.set_processing_time(1005)
    harness.process_element(("a", 1))
    harness.set_processing_time(1012)
    assert harness.get_output() == [1.0]
    restored = keyed(assigner, build).__class__(keyed(assigner, build).operator).restore(harness.snapshot())
    restored.set_processing_time(1015)
    restored.process_element(("a", 3))
    restored.set_processing_time(1100)
    assert restored.get_output_with_timestamps() == [(2.0, 1019), (3.0, 1029)]


@pytest.mark.parametrize(("batch_mode", "expected"), [(False, []), (True, [("a", 1)])])
@pytest.mark.parametrize("assigner", [TumblingProcessingTimeWindows.of(10), ProcessingTimeSessionWindows.with_gap(10)])
def test_open_processing_time_windows_at_the_end(assigner, batch_mode, expected) -> None:
    harness = keyed(assigner, lambda windowed: windowed.reduce(add), batch_mode=batch_mode)
    harness.process_element(("a", 1))
    harness.end_input()
    assert harness.get_output() == expected


def test_processing_time_sessions() -> None:
    harness = keyed(ProcessingTimeSessionWindows.with_gap(10), lambda windowed: windowed.apply(show))
    for now, number in ((100, 1), (108, 2), (116, 3), (130, 4)):
        harness.set_processing_time(now)
        harness.process_element(("a", number))
    harness.set_processing_time(200)
    assert harness.get_output() == [("a", TimeWindow(100, 126), [1, 2, 3]), ("a", TimeWindow(130, 140), [4])]


def test_sessions_merge_when_a_record_fills_the_gap() -> None:
    harness = keyed(EventTimeSessionWindows.with_gap(Time.milliseconds(10)), lambda windowed: windowed.apply(show))
    feed(harness, ("a", 1, 0), ("a", 3, 15), ("b", 9, 15))
    feed(harness, ("a", 2, 8))
    harness.process_watermark(24)
    assert sorted(harness.get_output(), key=str) == [
        ("a", TimeWindow(0, 25), [1, 3, 2]),
        ("b", TimeWindow(15, 25), [9]),
    ]
    assert harness.num_keyed_state_entries() == 0


def test_count_windows() -> None:
    harness = harness_of(lambda stream: stream.key_by(lambda value: value[0]).count_window(2).apply(show))
    harness.process_elements([("a", 1), ("b", 7), ("a", 2), ("a", 3), ("a", 4), ("a", 5)])
    assert harness.get_output_with_timestamps() == [
        (("a", CountWindow(0), [1, 2]), None),
        (("a", CountWindow(1), [3, 4]), None),
    ]
    assert harness.num_keyed_state_entries() == 6, "per key: the number of records, one window and its count"


def test_sliding_count_windows_as_in_pyflink() -> None:
    harness = harness_of(lambda stream: stream.count_window_all(3, 2).apply(lambda window, inputs: [list(inputs)]))
    harness.process_elements(list(range(8)))
    assert harness.get_output() == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]


def test_results_of_a_count_window_have_the_timestamp_of_the_record_that_filled_it() -> None:
    harness = harness_of(lambda stream: stream.count_window_all(2).reduce(lambda one, other: one + other))
    harness.process_elements([1, 2], [10, 20])
    assert harness.get_output_with_timestamps() == [(3, 20)]


def test_the_global_window_needs_a_trigger() -> None:
    never = keyed(GlobalWindows.create(), lambda windowed: windowed.apply(show))
    counting = keyed(GlobalWindows.create(), lambda windowed: windowed.trigger(CountTrigger.of(2)).apply(show))
    purging = keyed(
        GlobalWindows.create(), lambda windowed: windowed.trigger(PurgingTrigger.of(CountTrigger.of(2))).apply(show)
    )
    for harness in (never, counting, purging):
        harness.process_elements([("a", number) for number in range(4)])
        harness.process_watermark(MAX_WATERMARK)
    window = GlobalWindow.get()
    assert never.get_output() == []
    assert counting.get_output() == [("a", window, [0, 1]), ("a", window, [0, 1, 2, 3])]
    assert purging.get_output() == [("a", window, [0, 1]), ("a", window, [2, 3])]


class LetterWindow(Window):
    """A window of one's own."""

    def __init__(self, letter: str) -> None:
        self.letter = letter

    def max_timestamp(self) -> int:
        return ord(self.letter)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LetterWindow) and other.letter == self.letter

    def __hash__(self) -> int:
        return hash(self.letter)


class ByLetter(WindowAssigner[Any, LetterWindow]):
    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[LetterWindow]:
        return [LetterWindow(letter) for letter in element[0]]

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


def test_an_assigner_and_windows_of_ones_own() -> None:
    def build(stream: DataStream) -> DataStream:
        return (
            stream.key_by(lambda value: 0)
            .window(ByLetter())
            .apply(lambda key, window, inputs: [(window.letter, [number for _, number in inputs])])
        )

    harness = harness_of(build)
    feed(harness, ("ab", 1, 1), ("b", 2, 1))
    restored = OneInputOperatorHarness(harness_of(build).operator).restore(harness.snapshot())
    restored.process_watermark(ord("a"))
    assert restored.get_output() == [("a", [1])]
    restored.process_watermark(ord("b"))
    assert restored.get_output() == [("a", [1]), ("b", [1, 2])]


class MergeAll(MergingWindowAssigner[Any, TimeWindow]):
    """All windows of a key become one."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        return [TimeWindow(timestamp, timestamp + 1)]

    def merge_windows(self, windows: Iterable[TimeWindow], callback: Any) -> None:
        windows = list(windows)
        start, end = min(window.start for window in windows), max(window.end for window in windows)
        callback.merge(windows, TimeWindow(start, end))

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


def test_a_merging_assigner_of_ones_own() -> None:
    harness = keyed(MergeAll(), lambda windowed: windowed.apply(show))
    feed(harness, ("a", 1, 5), ("a", 2, 50), ("a", 3, 20), ("b", 4, 7))
    harness.process_watermark(100)
    assert harness.get_output() == [("b", TimeWindow(7, 8), [4]), ("a", TimeWindow(5, 51), [1, 2, 3])]


# -- triggers ---------------------------------------------------------------------------------------------------------


def test_early_results_by_event_time() -> None:
    trigger = ContinuousEventTimeTrigger.of(Time.milliseconds(4))
    harness = keyed(TUMBLING, lambda windowed: windowed.trigger(trigger).reduce(add))
    feed(harness, ("a", 1, 1))
    harness.process_watermark(3)
    assert harness.get_output() == []
    harness.process_watermark(4)
    feed(harness, ("a", 2, 5))
    harness.process_watermark(8)
    feed(harness, ("a", 3, 9))
    harness.process_watermark(20)
    assert harness.get_output_with_timestamps() == [(("a", 1), 4), (("a", 3), 8), (("a", 6), 9)]
    assert harness.num_keyed_state_entries() == harness.num_event_time_timers() == 0


def test_early_results_of_sessions() -> None:
    trigger = ContinuousEventTimeTrigger.of(10)
    harness = keyed(EventTimeSessionWindows.with_gap(20), lambda windowed: windowed.trigger(trigger).reduce(add))
    feed(harness, ("a", 1, 5))
    harness.process_watermark(11)
    feed(harness, ("a", 2, 15))
    harness.process_watermark(100)
    assert harness.get_output_with_timestamps() == [(("a", 1), 10), (("a", 3), 20), (("a", 3), 30), (("a", 3), 34)]
    assert harness.num_keyed_state_entries() == harness.num_event_time_timers() == 0


@pytest.mark.parametrize(
    "assigner", [TumblingProcessingTimeWindows.of(10), ProcessingTimeSessionWindows.with_gap(10)], ids=repr
)
def test_early_results_by_processing_time(assigner) -> None:
    trigger = ContinuousProcessingTimeTrigger.of(4)
    harness = keyed(assigner, lambda windowed: windowed.trigger(trigger).reduce(add))
    harness.set_processing_time(100)
    harness.process_element(("a", 1))
    harness.set_processing_time(104)
    harness.process_element(("a", 2))
    harness.set_processing_time(108)
    assert harness.get_output() == [("a", 1), ("a", 3)]
    harness.set_processing_time(200)
    assert set(harness.get_output()[2:]) == {("a", 3)}
    assert harness.num_keyed_state_entries() == harness.num_processing_time_timers() == 0


def test_early_results_by_processing_time_of_event_time_windows_that_are_long_over() -> None:
    trigger = ContinuousProcessingTimeTrigger.of(10)
    harness = keyed(TUMBLING, lambda windowed: windowed.trigger(trigger).reduce(add))
    harness.set_processing_time(1_000_005)
    feed(harness, ("a", 1, 1))
    harness.set_processing_time(1_000_020)
    assert harness.get_output_with_timestamps() == [(("a", 1), 1_000_010), (("a", 1), 1_000_020)]


def test_a_count_trigger_counts_over_merged_sessions() -> None:
    trigger = CountTrigger.of(3)
    harness = keyed(EventTimeSessionWindows.with_gap(10), lambda windowed: windowed.trigger(trigger).reduce(add))
    feed(harness, ("a", 1, 0), ("a", 2, 15), ("a", 3, 8), ("a", 4, 9))
    assert harness.get_output_with_timestamps() == [(("a", 6), 8)]


def test_a_delta_trigger_fires_when_the_value_has_moved_far_enough() -> None:
    trigger = DeltaTrigger.of(10, lambda old, new: new[1] - old[1])
    harness = keyed(GlobalWindows.create(), lambda windowed: windowed.trigger(PurgingTrigger(trigger)).apply(show))
    harness.process_elements([("a", number) for number in (1, 5, 11, 12, 20, 23)])
    window = GlobalWindow.get()
    assert harness.get_output() == [("a", window, [1, 5, 11, 12]), ("a", window, [20, 23])]


class OnDemand(Trigger[Any, Any]):
    """Does what the element says, and sets timers of both kinds."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        seen = ctx.get_partitioned_state(ListStateDescriptor("seen"))
        seen.add(element[1])
        if isinstance(element[1], TriggerResult):
            return element[1]
        ctx.register_event_time_timer(element[1])
        ctx.register_processing_time_timer(element[1])
        ctx.register_event_time_timer(7)
        ctx.delete_event_time_timer(7)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        assert ctx.get_current_watermark() >= time
        return TriggerResult.FIRE_AND_PURGE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(ListStateDescriptor("seen"))

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(ListStateDescriptor("seen")).clear()


def test_a_trigger_of_ones_own() -> None:
    harness = keyed(
        GlobalWindows.create(),
        lambda windowed: windowed.trigger(OnDemand()).process(lambda key, context, elements: [len(list(elements))]),
    )
    one = ("a", TriggerResult.CONTINUE)
    harness.process_elements([one, one, ("a", TriggerResult.FIRE), ("a", TriggerResult.FIRE_AND_PURGE)])
    harness.process_elements([one, ("a", TriggerResult.PURGE), ("a", TriggerResult.FIRE)])
    assert harness.get_output() == [3, 4, 1]
    harness.process_element(("a", 50))
    harness.set_processing_time(50)
    harness.process_watermark(49)
    assert harness.get_output() == [3, 4, 1, 2]
    harness.process_watermark(50)
    assert harness.get_output() == [3, 4, 1, 2, 2]


def test_a_trigger_of_ones_own_on_sessions() -> None:
    harness = keyed(EventTimeSessionWindows.with_gap(10), lambda windowed: windowed.trigger(OnDemand()).apply(show))
    for timestamp in (0, 15, 8):
        feed(harness, ("a", TriggerResult.CONTINUE, timestamp))  # type: ignore[arg-type]
    harness.process_watermark(100)
    assert [window for _, window, _ in harness.get_output()] == [TimeWindow(0, 25)]
    assert harness.num_keyed_state_entries() == 0


def test_a_trigger_must_say_what_to_do() -> None:
    class Silent(NeverTrigger):
        def on_element(self, *arguments: Any) -> Any:
            return None

    harness = keyed(GlobalWindows.create(), lambda windowed: windowed.trigger(Silent()).apply(show))
    with pytest.raises(UserCodeError, match="Silent returned None, expected a TriggerResult"):
        harness.process_element(("a", 1))


def test_a_purging_trigger_drops_what_late_records_would_fire_again() -> None:
    def build(windowed: Any) -> DataStream:
        return windowed.trigger(PurgingTrigger.of(EventTimeTrigger.create())).allowed_lateness(10).reduce(add)

    harness = keyed(TUMBLING, build)
    feed(harness, ("a", 1, 1))
    harness.process_watermark(9)
    feed(harness, ("a", 2, 1))
    assert harness.get_output() == [("a", 1), ("a", 2)]


# -- evictors ---------------------------------------------------------------------------------------------------------


class Distance(DeltaFunction):
    def get_delta(self, old_data_point: Any, new_data_point: Any) -> float:
        return abs(new_data_point[1] - old_data_point[1])


class DropOdd(Evictor):
    def evict_before(self, elements: list[Any], size: int, window: Any, ctx: Evictor.EvictorContext) -> None:
        assert size == len(elements)
        assert (ctx.get_current_processing_time(), ctx.get_current_watermark()) == (0, MIN_WATERMARK)
        elements[:] = [element for element in elements if element.value[1] % 2 == 0]

    def evict_after(self, elements: list[Any], size: int, window: Any, ctx: Evictor.EvictorContext) -> None:
        elements.pop()


@pytest.mark.parametrize(
    ("evictor", "expected"),
    [
        (CountEvictor.of(2), [[1, 2], [3, 4], [8, 9]]),
        (CountEvictor.of(1, True), [[1, 2], [2, 3, 4], [4, 8, 9]]),
        (TimeEvictor.of(Time.milliseconds(2)), [[1, 2], [3, 4], [8, 9]]),
        (TimeEvictor.of(3, True), [[1, 2], [1, 2, 3, 4], [2, 3, 4, 8, 9]]),
        (DeltaEvictor.of(2, Distance()), [[1, 2], [3, 4], [8, 9]]),
        (DeltaEvictor.of(6, Distance(), True), [[1, 2], [1, 2, 3, 4], [1, 2, 3, 4, 8, 9]]),
        (DropOdd(), [[2], [4], [8]]),
    ],
)
def test_evictors(evictor, expected) -> None:
    def build(windowed: Any) -> DataStream:
        return windowed.trigger(CountTrigger.of(2)).evictor(evictor).process(numbers)

    harness = keyed(GlobalWindows.create(), build)
    feed(harness, *[("a", number, number) for number in (1, 2, 3, 4, 8, 9)])
    assert harness.get_output() == expected


def test_an_evictor_without_timestamps_keeps_everything() -> None:
    def build(windowed: Any) -> DataStream:
        return windowed.trigger(CountTrigger.of(2)).evictor(TimeEvictor.of(1)).process(numbers)

    harness = keyed(GlobalWindows.create(), build)
    harness.process_elements([("a", 1), ("a", 2)])
    assert harness.get_output() == [[1, 2]]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda w: w.reduce(add), [("a", 5)]),
        (lambda w: w.aggregate(Mean()), [2.5]),
        (lambda w: w.reduce(add, Show()), [("a", (0, 10), [("a", 5)])]),
    ],
)
def test_an_evictor_with_reduce_and_aggregate(build, expected) -> None:
    harness = keyed(TUMBLING, lambda windowed: build(windowed.evictor(CountEvictor.of(2))))
    feed(harness, ("a", 1, 1), ("a", 2, 2), ("a", 3, 3))
    harness.process_watermark(9)
    assert harness.get_output() == expected


@pytest.mark.parametrize(
    ("build", "expected"),
    [(lambda w: w.reduce(add), []), (lambda w: w.aggregate(Mean()), []), (lambda w: w.process(numbers), [[]])],
)
def test_a_window_that_was_evicted_to_nothing(build, expected) -> None:
    harness = keyed(TUMBLING, lambda windowed: build(windowed.evictor(CountEvictor.of(0))))
    feed(harness, ("a", 1, 1))
    harness.process_watermark(9)
    assert harness.get_output() == expected


def test_an_evictor_on_sessions() -> None:
    def build(windowed: Any) -> DataStream:
        return windowed.evictor(CountEvictor.of(2)).process(numbers)

    harness = keyed(EventTimeSessionWindows.with_gap(10), build)
    feed(harness, ("a", 1, 0), ("a", 2, 15), ("a", 3, 8))
    restored = OneInputOperatorHarness(keyed(EventTimeSessionWindows.with_gap(10), build).operator)
    restored.restore(harness.snapshot()).process_watermark(100)
    assert restored.get_output() == [[2, 3]]


# -- late records and bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "assigner",
    [TUMBLING, SlidingEventTimeWindows.of(10, 5), SlidingEventTimeWindows.of(5, 10), EventTimeSessionWindows(5)],
    ids=repr,
)
@pytest.mark.parametrize("tagged", [False, True])
def test_late_records_are_dropped_or_go_to_a_side_output(assigner, tagged) -> None:
    def build(windowed: Any) -> DataStream:
        return (windowed.side_output_late_data(LATE) if tagged else windowed).reduce(add)

    harness = keyed(assigner, build)
    harness.process_watermark(100)
    feed(harness, ("a", 1, 3), ("a", 2, 103))
    assert harness.get_side_output(LATE) == ([("a", 1)] if tagged else [])
    counter = harness.operator._late_dropped
    assert counter.get_count() == (0 if tagged else 1)
    harness.process_watermark(MAX_WATERMARK)
    assert set(harness.get_output()) == {("a", 2)}


@pytest.mark.parametrize(
    "assigner", [TUMBLING, SlidingEventTimeWindows.of(10, 5), EventTimeSessionWindows(5)], ids=repr
)
@pytest.mark.parametrize("timestamps", [None, [5, None]])
def test_event_time_windows_need_timestamps(assigner, timestamps) -> None:
    harness = keyed(assigner, lambda windowed: windowed.reduce(add).name("sums"), name="sums")
    with pytest.raises(TimestampError, match=r"'sums': .*Windows\(.*needs event timestamps.*assign_timestamps"):
        harness.process_elements([("a", 1), ("a", 2)], timestamps)


@pytest.mark.parametrize("trigger", [EventTimeTrigger(), ContinuousEventTimeTrigger(100)])
def test_bad_keys(trigger) -> None:
    harness = keyed(TUMBLING, lambda windowed: windowed.trigger(trigger).reduce(add))
    with pytest.raises(InvalidKeyError):
        harness.operator.process_batch([("a", 1), (float("nan"), 2)], [1, 2])


@pytest.mark.parametrize("trigger", [EventTimeTrigger(), ContinuousEventTimeTrigger(100)])
def test_an_error_names_the_record_or_the_window(trigger) -> None:
    def fail(one: Any, other: Any) -> Any:
        raise ValueError("no")

    harness = keyed(TUMBLING, lambda windowed: windowed.trigger(trigger).reduce(fail), name="sums")
    with pytest.raises(UserCodeError, match="'sums' failed") as caught:
        feed(harness, ("a", 1, 1), ("b", 3, 1), ("a", 2, 1), ("a", 4, 1))
    assert caught.value.record_repr == "('a', 2)"

    harness = keyed(TUMBLING, lambda windowed: windowed.trigger(trigger).process(lambda *_: 1 / 0))
    feed(harness, ("a", 1, 1))
    with pytest.raises(UserCodeError, match="division by zero") as caught:
        harness.process_watermark(50)
    assert caught.value.record_repr == "<TimeWindow(start=0, end=10) of key 'a'>"


def test_an_error_in_the_result_of_an_aggregate_names_the_window() -> None:
    class Broken(Mean):
        def get_result(self, accumulator: Any) -> Any:
            return 1 / (accumulator[0] - 2)

    for assigner in (TUMBLING, SlidingEventTimeWindows.of(20, 10)):
        harness = keyed(assigner, lambda windowed: windowed.aggregate(Broken()))
        feed(harness, ("a", 1, 1), ("b", 2, 1))
        with pytest.raises(UserCodeError, match="division by zero") as caught:
            harness.process_watermark(50)
        assert caught.value.record_repr.endswith("of key 'b'>")


def test_a_dynamic_gap_must_be_positive() -> None:
    harness = keyed(EventTimeSessionWindows.with_dynamic_gap(lambda value: value[1]), lambda w: w.reduce(add))
    with pytest.raises(UserCodeError, match="must be a whole number of milliseconds greater than 0, found 0"):
        feed(harness, ("a", 0, 1))


def test_merging_must_not_make_a_window_end_earlier() -> None:
    class Shrink(MergeAll):
        def merge_windows(self, windows: Iterable[TimeWindow], callback: Any) -> None:
            callback.merge(list(windows), TimeWindow(0, 1))

    harness = keyed(Shrink(), lambda windowed: windowed.apply(show))
    harness.process_watermark(50)
    feed(harness, ("a", 1, 60))
    with pytest.raises(UserCodeError, match="merging must not make a window end earlier"):
        feed(harness, ("a", 1, 70))


def test_state_of_another_kind_of_window_is_refused() -> None:
    before = keyed(TUMBLING, lambda windowed: windowed.reduce(add))
    feed(before, ("a", 1, 1))
    after = keyed(TUMBLING, lambda windowed: windowed.trigger(CountTrigger(2)).reduce(add))
    harness = OneInputOperatorHarness(after.operator).restore(before.snapshot())
    with pytest.raises(StateError, match="was restored with 'window-panes'"):
        harness.open()


def test_count_windows_of_another_trigger_stay() -> None:
    """Only a window that fires when it is full is known to be over."""
    harness = keyed(CountTumblingWindowAssigner.of(3), lambda windowed: windowed.trigger(CountTrigger(2)).apply(show))
    harness.process_elements([("a", 1), ("a", 2), ("a", 3)])
    assert harness.get_output() == [("a", CountWindow(0), [1, 2])]


def test_triggers_that_cannot_merge_are_refused() -> None:
    with pytest.raises(PlanError, match=r"DeltaTrigger cannot be used with EventTimeSessionWindows\(5\)"):
        keyed(EventTimeSessionWindows(5), lambda windowed: windowed.trigger(DeltaTrigger.of(1, Distance())).apply(show))
