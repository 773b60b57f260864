"""The job's counters over time: rates of the last seconds, and a bounded history for charts.

Epochs are put together until they cover a second or more: a `Slice`. So a rate needs no guess about how the work of a
long epoch is spread over it. Has no clock: callers pass all times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.runtime.epoch.figures import add_counts
from headwater.runtime.job.metrics.epoch_counts import Key, Table, add_table

SLICE_SECONDS = 1.0
RECENT_SECONDS = 10.0
"""Rates are means over the last so many seconds."""
KEPT = 600
"""So many slices are kept: ten minutes, if epochs are short."""


@dataclass
class Slice:
    """A second or more of the job's life."""

    start: float
    end: float
    time_ms: int
    """Wall clock at its end."""
    table: Table = field(default_factory=dict)
    sums: dict[str, float] = field(default_factory=dict)
    """Over the epochs of the slice: how many there were, their phases ..."""
    gauges: dict[str, float | None] = field(default_factory=dict)
    """As of its last epoch."""

    @property
    def seconds(self) -> float:
        return self.end - self.start


class RecentHistory:
    """The last slices, oldest first. Not thread safe."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._slices: deque[Slice] = deque(maxlen=KEPT)
        self._open = True
        """The last slice is not full yet."""
        self._epoch_seconds = 0.0

    @property
    def last_end(self) -> float:
        """When the last epoch ended; in the beginning, when the job started."""
        return self._slices[-1].end if self._slices else self._start

    def add(
        self,
        now: float,
        time_ms: int,
        table: Table,
        sums: Mapping[str, float],
        gauges: Mapping[str, float | None],
        epoch_seconds: float,
    ) -> None:
        """An epoch has ended."""
        if not self._slices or not self._open:
            self._slices.append(Slice(self.last_end, now, time_ms))
        last = self._slices[-1]
        last.end, last.time_ms = now, time_ms
        add_table(last.table, table)
        add_counts(last.sums, dict(sums))
        last.gauges = dict(gauges)
        self._open = last.seconds < SLICE_SECONDS
        self._epoch_seconds = epoch_seconds
        if not self._open:
            self._condense(now)

    def _condense(self, now: float) -> None:
        """Give up what old slices know about single partitions: charts show vertices."""
        for each in reversed(self._slices):
            if now - each.end <= RECENT_SECONDS:
                continue
            if not any(key.subtask >= 0 for key in each.table):
                return
            table: Table = {}
            for key, counts in each.table.items():
                if key.kind == "subtask":
                    add_table(table, {Key("vertex", key.id, -1): counts})
            each.table = table

    def recent(self, now: float) -> tuple[Table, dict[str, float], float]:
        """Return counters, sums and seconds of the last slices.

        Without epochs for long, there is nothing recent: all counters are empty. (A long epoch is not a pause.)
        """
        quiet = max(RECENT_SECONDS, 2 * self._epoch_seconds)
        slices = [each for each in self._slices if now - each.end <= quiet][-int(RECENT_SECONDS / SLICE_SECONDS) :]
        table: Table = {}
        sums: dict[str, float] = {}
        for each in slices:
            add_table(table, each.table)
            add_counts(sums, each.sums)
        return table, sums, sum(each.seconds for each in slices)

    def slices(self) -> list[Slice]:
        """Return all slices, oldest first. The last one is a copy: it may still grow."""
        if not self._slices:
            return []
        *full, last = self._slices
        table = {key: dict(counts) for key, counts in last.table.items()}
        return [*full, Slice(last.start, last.end, last.time_ms, table, dict(last.sums), last.gauges)]
