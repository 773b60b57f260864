"""Tumbling and sliding time windows. They are the same for all keys: arithmetic tells where one begins."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Self

from headwater.common.errors import ConfigurationError
from headwater.common.time import DurationLike, to_millis
from headwater.time.assigners import TimeWindowAssigner, WindowAssigner
from headwater.time.windows import TimeWindow


class AlignedWindows(TimeWindowAssigner):
    """Base of the four: windows of `size_ms` of which one begins every `slide_ms`, counted from `offset_ms`."""

    def __init__(self, size_ms: int, slide_ms: int, offset_ms: int) -> None:
        name = type(self).__name__
        self.size_ms = to_millis(size_ms, f"{name}: size", minimum=1)
        self.slide_ms = to_millis(slide_ms, f"{name}: slide", minimum=1)
        self.offset_ms = to_millis(offset_ms, f"{name}: offset", minimum=None)
        if abs(self.offset_ms) >= self.slide_ms:
            raise ConfigurationError(
                f"{name}: the offset must be less than the distance between two windows, {self.slide_ms} ms, "
                f"found {self.offset_ms} ms"
            )

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        timestamp = self.time_of(timestamp, context)
        size, slide = self.size_ms, self.slide_ms
        last = timestamp - (timestamp - self.offset_ms) % slide
        return [TimeWindow(start, start + size) for start in range(last, timestamp - size, -slide)]


class _TumblingWindows(AlignedWindows):
    """Windows that follow each other without a gap."""

    def __init__(self, size: int, offset: int = 0) -> None:
        super().__init__(size, size, offset)

    @classmethod
    def of(cls, size: DurationLike, offset: DurationLike | None = None) -> Self:
        """Windows of `size`, of which one begins at `offset` after the Unix epoch.

        Days of UTC+8 are `of(Time.days(1), Time.hours(-8))`.
        """
        return cls(*_millis(cls, size=size, offset=offset))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size_ms}, {self.offset_ms})"


class TumblingEventTimeWindows(_TumblingWindows):
    """Windows of one size, one after the other, by the elements' timestamps."""

    event_time = True


class TumblingProcessingTimeWindows(_TumblingWindows):
    """Windows of one size, one after the other, by processing time."""

    event_time = False


class _SlidingWindows(AlignedWindows):
    """Windows that overlap, or leave gaps if the slide is greater than the size."""

    def __init__(self, size: int, slide: int, offset: int = 0) -> None:
        super().__init__(size, slide, offset)

    @classmethod
    def of(cls, size: DurationLike, slide: DurationLike, offset: DurationLike | None = None) -> Self:
        """Windows of `size` of which one begins every `slide`, counted from `offset` after the Unix epoch."""
        return cls(*_millis(cls, size=size, slide=slide, offset=offset))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size_ms}, {self.slide_ms}, {self.offset_ms})"


class SlidingEventTimeWindows(_SlidingWindows):
    """Windows of one size that begin at regular distances, by the elements' timestamps."""

    event_time = True


class SlidingProcessingTimeWindows(_SlidingWindows):
    """Windows of one size that begin at regular distances, by processing time."""

    event_time = False


def _millis(cls: type, **durations: DurationLike | None) -> list[int]:
    """The durations in milliseconds, 0 for None; sizes are checked by the constructor."""
    return [
        0 if duration is None else to_millis(duration, f"{cls.__name__}: {name}", minimum=None)
        for name, duration in durations.items()
    ]
