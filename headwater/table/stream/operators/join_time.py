"""What joins by time have in common: the clock, the time of rows, rows that come too late."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.common.ids import MIN_WATERMARK
from headwater.state.timers import TimerQueue
from headwater.table.plan.expressions import Column
from headwater.table.stream.changes import Changes
from headwater.table.stream.operators.join_base import KeyedJoin
from headwater.table.stream.operators.late_rows import LateDrop
from headwater.table.types.arrow import to_arrow

EVENT, PROCESSING = "event", "processing"
_PER_MS = {"us": 1_000, "ns": 1_000_000}


def per_ms(column: Column) -> int:
    """How many units of a time column, as rows in state have it, a millisecond is."""
    return _PER_MS[to_arrow(column.type).unit]


def times_ms(times: pa.Array, zone: str | None = None) -> np.ndarray:
    """Times in milliseconds; NULL is before all others. `zone`: they are local times of that zone."""
    if zone is not None and times.type.tz is None:
        times = pc.assume_timezone(times, zone, ambiguous="latest", nonexistent="latest")
    values = times.view(pa.int64())
    found = np.asarray(values.fill_null(0)) // _PER_MS[times.type.unit]
    return np.where(np.asarray(values.is_valid()), found, MIN_WATERMARK)


def place_of(column: Column, columns: Sequence[Column]) -> int:
    return [each.id for each in columns].index(column.id)


class TimedJoin(KeyedJoin):
    """A join that waits for time. `time` is EVENT (the watermark) or PROCESSING (the epoch's now)."""

    time = EVENT
    drops_late = True

    def open(self) -> None:
        super().open()
        self._late = LateDrop(self, self.keeps_late)

    @property
    def passed(self) -> int:
        """Rows of this time and before come no more, but late."""
        return self.context.watermark if self.time == EVENT else self.context.processing_time_ms - 1

    @property
    def timers(self) -> TimerQueue:
        return self.backend.event_timers if self.time == EVENT else self.backend.processing_timers

    def next_processing_timer(self) -> int | None:
        due = self.backend.processing_timers.peek()
        return None if due is None else due + 1

    def next_event_timer(self) -> int | None:
        return self.backend.event_timers.peek()

    def in_time(self, side: int, changes: Changes, times: np.ndarray) -> tuple[Changes, np.ndarray]:
        """Drop the rows whose time had passed when the epoch began. By processing time none is late."""
        limit = self.watermark_before if self.time == EVENT else MIN_WATERMARK
        late = times <= limit
        if not late.any():
            return changes, times
        self._late.drop(changes.take(np.flatnonzero(late)), self.inputs[side])
        kept = np.flatnonzero(~late)
        return changes.take(kept), times[kept]
