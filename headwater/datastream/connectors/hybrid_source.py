"""Several sources one after the other: history from files, then what is new from a directory that is watched."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import ConfigurationError
from headwater.common.rejected import Rejected

__all__ = ["HybridSource", "HybridSourceBuilder"]


@dataclass(frozen=True)
class HybridPosition:
    """Which source is being read, and how far. Splits are found when their source's turn comes, and kept here."""

    source: int = 0
    waiting: tuple[tuple[Split, Any | None], ...] | None = None
    """(split, position) of each that has not ended, the one being read first; None: not looked for yet."""
    known: frozenset[str] = field(default_factory=frozenset)
    """Ids of all splits of this source that were found."""


@dataclass(frozen=True)
class _Plan:
    at: HybridPosition
    first: Split | None
    """The first waiting split, prepared by its source for this epoch. It may hold records: never store it as a
    position."""


class HybridSource(Source):
    """Reads its sources in turn: the next one begins when the one before it has ended. Only the last may be endless.

    One task reads, split by split, so that nothing of a later source comes before the end of an earlier one.

    Built by `HybridSource.builder(first).add_source(next).build()`.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = tuple(sources)
        self.bounded = self.sources[-1].bounded
        # One limit for all: a source must never be read faster than it allows.
        self.rate_per_second = min(
            (source.rate_per_second for source in self.sources if source.rate_per_second is not None), default=None
        )

    @staticmethod
    def builder(first_source: Source) -> HybridSourceBuilder:
        return HybridSourceBuilder(first_source)

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        return [] if known else [Split("all", None)]

    def plan_read(self, split: Split, position: HybridPosition | None, budget: int) -> Split:
        """Find splits, which only the driver may do, and let their source prepare the one to read."""
        at = self._looked(position or HybridPosition())
        while not at.waiting and at.source + 1 < len(self.sources):
            at = self._looked(HybridPosition(at.source + 1))
        planned = self.sources[at.source].plan_read(*at.waiting[0], budget) if at.waiting else None
        return Split(split.split_id, _Plan(at, planned))

    def _looked(self, at: HybridPosition) -> HybridPosition:
        source = self.sources[at.source]
        if at.waiting is not None and source.discovery_interval_ms is None:
            return at
        found = source.discover_splits(1, at.known)
        waiting = (*(at.waiting or ()), *((split, None) for split in found))
        return replace(at, waiting=waiting, known=at.known.union(split.split_id for split in found))

    def open_reader(self, split: Split, position: HybridPosition | None) -> SplitReader:
        plan = split.payload if split.payload is not None else self.plan_read(split, position, sys.maxsize).payload
        return _HybridReader(self, plan)

    def __repr__(self) -> str:
        return f"HybridSource({', '.join(map(repr, self.sources))})"


class HybridSourceBuilder:
    """Collects the sources in the order in which they are read."""

    def __init__(self, first_source: Source) -> None:
        self._sources: list[Source] = []
        self.add_source(first_source)

    def add_source(self, source: Source) -> HybridSourceBuilder:
        if not isinstance(source, Source):
            raise ConfigurationError(
                f"HybridSource got {source!r}; expected a source that is read in splits, such as FileSource or "
                "NumberSequenceSource. Read a DataFrame by itself and union both streams"
            )
        if self._sources and not self._sources[-1].bounded:
            raise ConfigurationError(
                f"HybridSource: {self._sources[-1]!r} never ends, so {source!r} would never be read; only the last "
                "source may be unbounded"
            )
        self._sources.append(source)
        return self

    def build(self) -> HybridSource:
        return HybridSource(self._sources)


class _HybridReader(SplitReader):
    """Reads the splits of one source that are planned for this epoch; the driver turns to the next source."""

    def __init__(self, owner: HybridSource, plan: _Plan) -> None:
        self._source = owner.sources[plan.at.source]
        self._last = plan.at.source + 1 == len(owner.sources)
        self._at = plan.at
        self._waiting = list(plan.at.waiting or ())
        self._prepared = plan.first
        self._prepares = type(self._source).plan_read is not Source.plan_read
        self._reader: SplitReader | None = None
        self._rejected: list[Rejected] = []
        """Of readers that are closed."""

    def read_batch(self, max_records: int) -> list[Any] | None:
        while self._waiting:
            if self._reader is None:
                split, position = self._waiting[0]
                if self._prepares and self._prepared is None:
                    return []  # it is read in the next epoch
                self._reader = self._source.open_reader(self._prepared or split, position)
                self._prepared = None
            records = self._reader.read_batch(max_records)
            if records is not None:
                return records
            self._close_reader()
            self._waiting.pop(0)
        return None if self._last and self._source.bounded else []

    def position(self) -> HybridPosition:
        waiting = list(self._waiting)
        if self._reader is not None:
            waiting[0] = (waiting[0][0], self._reader.position())
        return replace(self._at, waiting=tuple(waiting))

    def counters(self) -> dict[str, int]:
        return self._reader.counters() if self._reader is not None else {}

    def gauges(self) -> dict[str, float]:
        return self._reader.gauges() if self._reader is not None else {}

    def rejected(self) -> list[Rejected]:
        rejected, self._rejected = self._rejected, []
        return rejected + (self._reader.rejected() if self._reader is not None else [])

    def close(self) -> None:
        self._close_reader()

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._rejected += self._reader.rejected()
            self._reader.close()
            self._reader = None
