"""A bounded sequence of whole numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import ConfigurationError

__all__ = ["NumberSequenceSource", "RangeReader"]


class NumberSequenceSource(Source):
    """The numbers from `start` to `end`, both included, in as many contiguous parts as the source's parallelism.

    Each part is in order; with parallelism 1 the whole sequence is.
    """

    def __init__(self, start: int, end: int) -> None:
        for name, value in (("start", start), ("end", end)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ConfigurationError(f"NumberSequenceSource: {name} is {value!r}; expected a whole number")
        if end < start:
            raise ConfigurationError(
                f"NumberSequenceSource: end {end} is before start {start}; both are part of the sequence"
            )
        self.start = start
        self.end = end

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        if known:
            return []  # the sequence was cut up in an earlier run, perhaps for another parallelism
        total = self.end - self.start + 1
        parts = max(1, min(parallelism, total))
        cuts = [self.start + total * part // parts for part in range(parts + 1)]
        return [Split(f"{a}-{b - 1}", (a, b)) for a, b in pairwise(cuts)]

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        first, stop = split.payload
        return RangeReader(range(first if position is None else position, stop))

    def __repr__(self) -> str:
        return f"NumberSequenceSource({self.start}, {self.end})"


class RangeReader(SplitReader):
    """Reads a range of numbers. The position is the next number."""

    gives_away = True

    def __init__(self, numbers: range) -> None:
        self._left = numbers

    def read_batch(self, max_records: int) -> list[Any] | None:
        batch = self._left[:max_records]
        if not batch:
            return None
        self._left = self._left[max_records:]
        return list(batch)

    def position(self) -> int:
        return self._left.start
