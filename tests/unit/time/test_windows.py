"""Windows, assigners, triggers and evictors by themselves: arithmetic, and what they refuse."""

from __future__ import annotations

import datetime
import pickle
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common import Duration, Time
from headwater.common.errors import ConfigurationError, TypeMismatchError
from headwater.common.ids import MAX_WATERMARK
from headwater.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CountWindow,
    CountWindowSerializer,
    DeltaEvictor,
    DeltaTrigger,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    GlobalWindowSerializer,
    MergingWindowAssigner,
    NeverTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeEvictor,
    TimeWindow,
    TimeWindowSerializer,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from headwater.time.windows import namespace_of, window_of

WINDOWS = [TimeWindow(-5, 10), CountWindow(7), GlobalWindow.get()]


@pytest.mark.parametrize(
    ("window", "serializer"),
    list(zip(WINDOWS, [TimeWindowSerializer(), CountWindowSerializer(), GlobalWindowSerializer()], strict=True)),
)
def test_windows_come_back_from_bytes_and_namespaces(window, serializer) -> None:
    stream = BytesIO()
    serializer.serialize(window, stream)
    stream.seek(0)
    assert serializer.deserialize(stream) == window
    assert window_of(namespace_of(window)) == window
    assert pickle.loads(pickle.dumps(window)) == window
    assert hash(window_of(namespace_of(window))) == hash(window)


def test_windows_of_different_kinds_differ() -> None:
    assert CountWindow(0) != GlobalWindow.get() != TimeWindow(0, 0) != CountWindow(0)
    assert len({*WINDOWS, *WINDOWS}) == 3
    assert repr(WINDOWS) == "[TimeWindow(start=-5, end=10), CountWindow(id=7), GlobalWindow]"
    assert [window.max_timestamp() for window in WINDOWS] == [9, MAX_WATERMARK, MAX_WATERMARK]


def test_time_windows_compare_and_cover() -> None:
    assert sorted([TimeWindow(5, 6), TimeWindow(0, 9), TimeWindow(0, 3)]) == [
        TimeWindow(0, 3),
        TimeWindow(0, 9),
        TimeWindow(5, 6),
    ]
    assert TimeWindow(0, 3) <= TimeWindow(0, 3)
    assert TimeWindow(0, 5).intersects(TimeWindow(5, 6))
    assert not TimeWindow(0, 5).intersects(TimeWindow(6, 7))
    assert TimeWindow(0, 5).cover(TimeWindow(3, 9)) == TimeWindow(0, 9)
    with pytest.raises(TypeError):
        _ = TimeWindow(0, 5) < CountWindow(1)  # type: ignore[operator]


class Collected(MergingWindowAssigner.MergeCallback):
    def __init__(self) -> None:
        self.found: list[tuple[list[Any], Any]] = []

    def merge(self, to_be_merged, merge_result) -> None:
        self.found.append((sorted(to_be_merged), merge_result))


def test_overlapping_windows_are_merged() -> None:
    collected = Collected()
    windows = [TimeWindow(30, 40), TimeWindow(0, 10), TimeWindow(12, 20), TimeWindow(10, 11), TimeWindow(35, 36)]
    EventTimeSessionWindows(5).merge_windows(windows, collected)
    assert collected.found == [
        ([TimeWindow(0, 10), TimeWindow(10, 11)], TimeWindow(0, 11)),
        ([TimeWindow(30, 40), TimeWindow(35, 36)], TimeWindow(30, 40)),
    ]


@given(st.integers(-(10**6), 10**6), st.integers(1, 1000), st.integers(-999, 999))
def test_a_window_has_the_timestamp_it_was_made_for(timestamp, size, offset) -> None:
    start = TimeWindow.get_window_start_with_offset(timestamp, offset, size)
    assert start <= timestamp < start + size
    assert (start - offset) % size == 0


class Now:
    """A context for assigners."""

    def get_current_processing_time(self) -> int:
        return 105


@pytest.mark.parametrize(
    ("assigner", "expected"),
    [
        (TumblingEventTimeWindows.of(Time.milliseconds(10)), [(40, 50)]),
        (TumblingEventTimeWindows.of(Duration.of_millis(10), Time.milliseconds(7)), [(37, 47)]),
        (TumblingProcessingTimeWindows.of(datetime.timedelta(milliseconds=10)), [(100, 110)]),
        (SlidingEventTimeWindows.of(20, 10), [(40, 60), (30, 50)]),
        (SlidingEventTimeWindows.of(25, 10, 3), [(43, 68), (33, 58), (23, 48)]),
        (SlidingEventTimeWindows.of(5, 40), [(40, 45)]),
        (SlidingEventTimeWindows.of(4, 40), []),
        (SlidingProcessingTimeWindows.of(20, 10), [(100, 120), (90, 110)]),
        (EventTimeSessionWindows.with_gap(Time.milliseconds(3)), [(44, 47)]),
        (ProcessingTimeSessionWindows.with_gap(3), [(105, 108)]),
        (EventTimeSessionWindows.with_dynamic_gap(len), [(44, 46)]),
        (ProcessingTimeSessionWindows.with_dynamic_gap(len), [(105, 107)]),
    ],
    ids=lambda item: repr(item) if not isinstance(item, list) else "",
)
def test_assigners(assigner, expected) -> None:
    windows = assigner.assign_windows("ab", 44, Now())
    assert [(window.start, window.end) for window in windows] == expected
    by_event_time = "EventTime" in type(assigner).__name__
    assert assigner.is_event_time() is by_event_time
    assert type(assigner.get_default_trigger(None)) is (EventTimeTrigger if by_event_time else ProcessingTimeTrigger)
    assert isinstance(assigner.get_window_serializer(), TimeWindowSerializer)
    assert type(assigner).__name__ in repr(pickle.loads(pickle.dumps(assigner)))


def test_the_defaults_of_the_other_assigners() -> None:
    assert isinstance(GlobalWindows.create().get_default_trigger(None), NeverTrigger)
    assert CountTumblingWindowAssigner.of(3).get_default_trigger(None).window_size == 3
    assert CountSlidingWindowAssigner.of(5, 2).get_default_trigger(None).window_size == 5
    assert [GlobalWindows(), CountTumblingWindowAssigner(3), CountSlidingWindowAssigner(5, 2)].__repr__() == (
        "[GlobalWindows(), CountTumblingWindowAssigner(3), CountSlidingWindowAssigner(5, 2)]"
    )


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: TumblingEventTimeWindows.of(0), ConfigurationError, "TumblingEventTimeWindows: size.*at least 1 ms"),
        (lambda: TumblingEventTimeWindows.of(10, 10), ConfigurationError, "offset must be less than"),
        (lambda: TumblingEventTimeWindows.of("10 s"), ConfigurationError, "expected a Duration"),
        (lambda: SlidingEventTimeWindows.of(10, 0), ConfigurationError, "slide: expected at least 1 ms, found 0 ms"),
        (lambda: SlidingProcessingTimeWindows.of(-5, 1), ConfigurationError, "size: expected at least 1 ms"),
        (lambda: SlidingEventTimeWindows.of(10, 5, -5), ConfigurationError, "less than the distance.*5 ms"),
        (lambda: EventTimeSessionWindows.with_gap(0), ConfigurationError, "session gap: expected at least 1 ms"),
        (lambda: ProcessingTimeSessionWindows.with_gap(-1), ConfigurationError, "session gap: expected at least 1 ms"),
        (lambda: EventTimeSessionWindows(0), ConfigurationError, "session gap: expected at least 1 ms"),
        (lambda: DynamicEventTimeSessionWindows(5), TypeMismatchError, "expects a SessionWindowTimeGapExtractor"),
        (lambda: DynamicProcessingTimeSessionWindows(int), TypeMismatchError, "found <class 'int'>"),
        (lambda: CountTumblingWindowAssigner(0), ConfigurationError, "size must be a whole number of at least 1"),
        (lambda: CountSlidingWindowAssigner(3, 0), ConfigurationError, "slide must be a whole number of at least 1"),
        (lambda: CountTrigger(0), ConfigurationError, "at least 1"),
        (lambda: CountTrigger(2.0), ConfigurationError, r"found 2\.0"),
        (lambda: ContinuousEventTimeTrigger.of(0), ConfigurationError, "interval: expected at least 1 ms"),
        (lambda: ContinuousProcessingTimeTrigger(-1), ConfigurationError, "interval: expected at least 1 ms"),
        (lambda: PurgingTrigger.of(EventTimeTrigger), TypeMismatchError, "PurgingTrigger expects a Trigger"),
        (lambda: DeltaTrigger.of(1, 5), TypeMismatchError, "DeltaTrigger expects a DeltaFunction"),
        (lambda: DeltaEvictor.of(1, "x"), TypeMismatchError, "DeltaEvictor expects a DeltaFunction"),
        (lambda: CountEvictor.of(-1), ConfigurationError, "CountEvictor expects"),
        (lambda: TimeEvictor.of(-1), ConfigurationError, "TimeEvictor: window_size"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_written(make, error, message) -> None:
    with pytest.raises(error, match=message):
        make()


def test_trigger_results() -> None:
    assert [(result.is_fire(), result.is_purge()) for result in TriggerResult] == [
        (False, False),
        (True, True),
        (True, False),
        (False, True),
    ]
