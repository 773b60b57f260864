"""Where the payments come from: a source as anybody may write one.

Split `k` of `n` holds payments k, k + n, k + 2n, …: all splits walk through event time side by side.
"""

from __future__ import annotations

from typing import Any

from headwater.common.connector import Source, Split, SplitReader
from headwater.demo.payments import Payment, payments


class PaymentSource(Source):
    """`count` payments, at most `rate_per_second` of them per second (None: as fast as the job is)."""

    bounded = True

    def __init__(self, count: int, rate_per_second: float | None = None) -> None:
        self.count = count
        self.rate_per_second = rate_per_second

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        if known:
            return []
        return [Split(f"payments-{first}-of-{parallelism}", (first, parallelism)) for first in range(parallelism)]

    def open_reader(self, split: Split, position: Any | None) -> PaymentReader:
        first, step = split.payload
        return PaymentReader(first if position is None else position, self.count, step)


class PaymentReader(SplitReader):
    """Reads every `step`-th payment from `next_index` on. The position is the index of the next payment."""

    def __init__(self, next_index: int, end: int, step: int) -> None:
        self._next_index, self._end, self._step = next_index, end, step

    def read_batch(self, max_records: int) -> list[Payment] | None:
        indices = range(self._next_index, self._end, self._step)[:max_records]
        if not indices:
            return None
        self._next_index = indices[-1] + self._step
        return payments(indices)

    def position(self) -> int:
        return self._next_index
