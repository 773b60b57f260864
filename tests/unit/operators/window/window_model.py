"""Windows recomputed from scratch, slowly and obviously: what the window operators are compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headwater.common.ids import MIN_WATERMARK

Interval = tuple[int, int]
"""start (inclusive), end (exclusive)"""


def sliding(size: int, slide: int, offset: int = 0) -> Callable[[int], list[Interval]]:
    """All windows of the timestamp, found by looking at every possible start."""

    def windows(timestamp: int) -> list[Interval]:
        possible = range(timestamp - size + 1, timestamp + 1)
        return [(start, start + size) for start in possible if (start - offset) % slide == 0]

    return windows


@dataclass
class AlignedModel:
    """Event-time windows with the default trigger."""

    windows_of: Callable[[int], list[Interval]]
    lateness: int = 0
    watermark: int = MIN_WATERMARK
    contents: dict[tuple[Any, Interval], list[Any]] = field(default_factory=dict)
    fired: list[tuple[Any, Interval, list[Any], int]] = field(default_factory=list)
    """(key, window, its elements, timestamp of the result)"""
    late: list[Any] = field(default_factory=list)

    def record(self, key: Any, value: Any, timestamp: int) -> None:
        taken = False
        for window in self.windows_of(timestamp):
            if window[1] - 1 + self.lateness <= self.watermark:
                continue
            taken = True
            elements = self.contents.setdefault((key, window), [])
            elements.append(value)
            if window[1] - 1 <= self.watermark:
                self.fired.append((key, window, list(elements), timestamp))
        if not taken and timestamp + self.lateness <= self.watermark:
            self.late.append(value)

    def advance(self, watermark: int) -> None:
        for (key, window), elements in list(self.contents.items()):
            if self.watermark < window[1] - 1 <= watermark:
                self.fired.append((key, window, list(elements), window[1] - 1))
            if window[1] - 1 + self.lateness <= watermark:
                del self.contents[key, window]
        self.watermark = watermark


@dataclass
class SessionModel:
    """Event-time sessions with the default trigger."""

    gap_of: Callable[[Any], int]
    lateness: int = 0
    watermark: int = MIN_WATERMARK
    sessions: dict[Any, list[tuple[Interval, list[Any]]]] = field(default_factory=dict)
    fired: list[tuple[Any, Interval, list[Any], int]] = field(default_factory=list)
    late: list[Any] = field(default_factory=list)

    def record(self, key: Any, value: Any, timestamp: int) -> None:
        start, end, elements = timestamp, timestamp + self.gap_of(value), [value]
        apart = []
        for (other_start, other_end), others in self.sessions.get(key, []):
            if start <= other_end and other_start <= timestamp + self.gap_of(value):
                start, end = min(start, other_start), max(end, other_end)
                elements = others + elements
            else:
                apart.append(((other_start, other_end), others))
        if end - 1 + self.lateness <= self.watermark:
            if timestamp + self.lateness <= self.watermark:
                self.late.append(value)
            return
        self.sessions[key] = [*apart, ((start, end), elements)]
        if end - 1 <= self.watermark:
            self.fired.append((key, (start, end), list(elements), timestamp))

    def advance(self, watermark: int) -> None:
        for key, sessions in self.sessions.items():
            for window, elements in sessions:
                if self.watermark < window[1] - 1 <= watermark:
                    self.fired.append((key, window, list(elements), window[1] - 1))
            self.sessions[key] = [each for each in sessions if each[0][1] - 1 + self.lateness > watermark]
        self.watermark = watermark
