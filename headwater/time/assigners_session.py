"""Session windows: elements of a key that are less than a gap apart. They merge as elements come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any

from headwater.common.errors import ConfigurationError, TypeMismatchError, short_repr
from headwater.common.time import DurationLike, to_millis
from headwater.time.assigners import MergingWindowAssigner, TimeWindowAssigner, WindowAssigner
from headwater.time.windows import TimeWindow


class SessionWindowTimeGapExtractor(ABC):
    """Tells the gap that must pass after an element for its session to end."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap in milliseconds, greater than 0."""


GapExtractor = SessionWindowTimeGapExtractor | Callable[[Any], int]


class SessionWindows(TimeWindowAssigner, MergingWindowAssigner[Any, TimeWindow]):
    """Base of the four session assigners. An element opens the window from its time to its time plus the gap."""

    @abstractmethod
    def gap_of(self, element: Any) -> int:
        """The gap of `element` in milliseconds, greater than 0."""

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        timestamp = self.time_of(timestamp, context)
        return (TimeWindow(timestamp, timestamp + self.gap_of(element)),)

    def merge_windows(self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback) -> None:
        TimeWindow.merge_windows(windows, callback)


class _FixedGap(SessionWindows):
    """The gap is the same for all elements."""

    def __init__(self, session_gap: int) -> None:
        self.gap_ms = to_millis(session_gap, f"{type(self).__name__}: session gap", minimum=1)

    def gap_of(self, element: Any) -> int:
        return self.gap_ms

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.gap_ms})"


class _DynamicGap(SessionWindows):
    """Each element has a gap of its own."""

    def __init__(self, session_window_time_gap_extractor: GapExtractor) -> None:
        extractor = session_window_time_gap_extractor
        extract = getattr(extractor, "extract", extractor)
        if isinstance(extractor, type) or not callable(extract):
            raise TypeMismatchError(
                f"{type(self).__name__} expects a SessionWindowTimeGapExtractor or a function of the element, "
                f"found {short_repr(extractor)}"
            )
        self.extractor = extractor
        self._extract: Callable[[Any], int] = extract

    def gap_of(self, element: Any) -> int:
        gap = self._extract(element)
        if not isinstance(gap, int) or isinstance(gap, bool) or gap <= 0:
            raise ConfigurationError(
                f"{self!r}: the session gap of an element must be a whole number of milliseconds greater than 0, "
                f"found {gap!r} for {short_repr(element)}"
            )
        return gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.extractor).__name__})"


class DynamicEventTimeSessionWindows(_DynamicGap):
    """Sessions by the elements' timestamps; each element tells its gap."""

    event_time = True

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicEventTimeSessionWindows:
        return DynamicEventTimeSessionWindows(extractor)


class DynamicProcessingTimeSessionWindows(_DynamicGap):
    """Sessions by processing time; each element tells its gap."""

    event_time = False

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicProcessingTimeSessionWindows:
        return DynamicProcessingTimeSessionWindows(extractor)


class EventTimeSessionWindows(_FixedGap):
    """Sessions by the elements' timestamps, which end when nothing has come for the gap."""

    event_time = True

    @staticmethod
    def with_gap(size: DurationLike) -> EventTimeSessionWindows:
        return EventTimeSessionWindows(to_millis(size, "EventTimeSessionWindows: session gap", minimum=1))

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicEventTimeSessionWindows:
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(_FixedGap):
    """Sessions by processing time, which end when nothing has come for the gap."""

    event_time = False

    @staticmethod
    def with_gap(size: DurationLike) -> ProcessingTimeSessionWindows:
        return ProcessingTimeSessionWindows(to_millis(size, "ProcessingTimeSessionWindows: session gap", minimum=1))

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicProcessingTimeSessionWindows:
        return DynamicProcessingTimeSessionWindows(extractor)
