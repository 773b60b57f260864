"""How latencies are spread: counts in bins that are equally wide on a logarithmic axis.

Imported inside the peers' environments too, so: the standard library only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

BINS_PER_DECADE = 40
SHORTEST_MS = 0.01
"""What is shorter counts as this: nothing that was measured is."""


@dataclass(frozen=True)
class Histogram:
    """`counts[n]` values lie in bin `first + n`; bin `b` begins at `SHORTEST_MS * 10 ** (b / BINS_PER_DECADE)`."""

    first: int
    counts: tuple[int, ...]

    @staticmethod
    def of(values_ms: Iterable[float]) -> Histogram:
        found = Counter(bin_of(value) for value in values_ms)
        if not found:
            return Histogram(0, ())
        first, last = min(found), max(found)
        return Histogram(first, tuple(found[index] for index in range(first, last + 1)))

    def encode(self) -> str:
        """One line, for `results.json`."""
        return f"{self.first}:{','.join(map(str, self.counts))}"

    @staticmethod
    def decode(text: str) -> Histogram:
        first, _, counts = text.partition(":")
        return Histogram(int(first), tuple(int(count) for count in counts.split(",") if count))

    def curve(self, blur_bins: float = 1.2) -> list[tuple[float, float]]:
        """(ms, share of the values per decade) along the axis, smoothed a little, from nothing to nothing."""
        total, reach = sum(self.counts), math.ceil(4 * blur_bins)
        if not total:
            return []
        kernel = [math.exp(-0.5 * (offset / blur_bins) ** 2) for offset in range(-reach, reach + 1)]
        scale = BINS_PER_DECADE / (sum(kernel) * total)
        points = []
        for index in range(-reach, len(self.counts) + reach):
            around = (
                weight * self.counts[index + offset]
                for offset, weight in zip(range(-reach, reach + 1), kernel, strict=True)
                if 0 <= index + offset < len(self.counts)
            )
            points.append((middle_ms(self.first + index), sum(around) * scale))
        return points


def bin_of(value_ms: float) -> int:
    return max(0, math.floor(math.log10(max(value_ms, SHORTEST_MS) / SHORTEST_MS) * BINS_PER_DECADE))


def middle_ms(index: int) -> float:
    return float(SHORTEST_MS * 10 ** ((index + 0.5) / BINS_PER_DECADE))
