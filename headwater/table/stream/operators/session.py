"""SESSION as a table function: rows are kept by key until time has passed the session that they are in."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.common.ids import MIN_WATERMARK
from headwater.state.api import ValueState
from headwater.state.descriptors import ValueStateDescriptor
from headwater.state.timers import TimerQueue
from headwater.table.plan.expressions import Column
from headwater.table.plan.nodes import WindowTable
from headwater.table.stream.changes import Changes, schema_of
from headwater.table.stream.keys import KeyColumns
from headwater.table.stream.operators.base import EpochOperator
from headwater.table.stream.operators.late_rows import LateDrop
from headwater.table.stream.operators.rank_rows import RowList
from headwater.table.stream.operators.row_state import Row, by_key
from headwater.table.stream.operators.windows import WindowColumns
from headwater.table.stream.operators.windows_time import clock_of, local_ms
from headwater.table.stream.rows import frozen_rows, thawed_rows
from headwater.table.types.logical import LocalZonedTimestampType


@dataclass(frozen=True)
class Closed:
    """A session that is over: from its first row's time to the gap after the last one's; rows in order of time.

    Each row has its local time in milliseconds behind it.
    """

    start_ms: int
    end_ms: int
    rows: list[Row]


class SessionAssignOperator(EpochOperator):
    """Emits rows with the bounds of their session, once, when it is over. Keyed by the node's `partition_by`.

    Rows of one session follow each other with at most the gap between them. The input may update: a row that is taken
    back may split its session. A row is late if the session that it makes, or joins, was over before the epoch; by
    processing time none is.
    State is bounded by what is open, so that no TTL is needed.
    """

    drops_late = True

    def __init__(
        self,
        input: Sequence[Column],
        node: WindowTable,
        columns: Sequence[Column],
        *,
        event_time: bool = True,
        zone: str = "UTC",
    ) -> None:
        super().__init__([input], columns, zone)
        places = {column.id: place for place, column in enumerate(input)}
        self.keys = KeyColumns([places[column.id] for column in node.partition_by])
        self._time = places[node.time.id]
        self._gap_ms = node.size_ms
        self._event_time = event_time
        self._zoned = isinstance(node.time.type, LocalZonedTimestampType)
        self._bounds = WindowColumns(node.added, zone)

    def open(self) -> None:
        super().open()
        self._rows = RowList(self.backend, "open-rows-list", None)  # each row with its local time in ms behind it
        self._sessions: ValueState[tuple[tuple[int, int], ...]] = self.backend.get_state(
            ValueStateDescriptor("sessions")
        )
        self._end_ms = clock_of(self.zone, self._zoned)
        self._late = LateDrop(self, self.keeps_late)

    def finish(self, taken: list[Changes]) -> None:
        self._take(taken[0])
        closed: list[Closed] = []
        due = list(dict.fromkeys(key for _, key, _ in self._timers.pop_due(self._passed())))
        gone: dict[Any, list[tuple[Row, int]]] = {}
        for key, rows in zip(due, self._rows.rows(due), strict=True):
            over = self._closed(key, rows)
            gone[key] = [(row, -1) for session in over for row in session.rows]
            closed += over
        self._rows.apply(gone, self.context.epoch)
        if closed:
            self._emit(closed)

    def _take(self, changes: Changes) -> None:
        times = changes.rows.column(self._time)
        if times.null_count:
            changes = changes.filter(times.is_valid())
            times = changes.rows.column(self._time)
        if not len(changes):
            return
        moments = pa.array(local_ms(times, self.zone))
        names = [str(place) for place in range(changes.rows.num_columns + 1)]
        changes = changes.with_rows(pa.RecordBatch.from_arrays([*changes.rows.columns, moments], names=names)).netted()
        by = by_key(self.keys.of(changes), frozen_rows(changes.rows), changes.weight_array().tolist())
        self._rows.apply(by, self.context.epoch)
        for (key, rows), held in zip(by.items(), self._rows.counts(list(by)), strict=True):
            self._update_sessions(key, dict(held), {row for row, weight in rows if weight > 0})

    def _update_sessions(self, key: Any, counts: dict[Row, int], new: set[Row]) -> None:
        found = self._sessions_of(sorted(row[-1] for row in counts))
        before = self.watermark_before if self._event_time else MIN_WATERMARK
        over = [session for session in found if self._last_ms(session) <= before]
        if over:
            # The part of a session that was split may be over too: its rows were in time.
            kept = sorted(row[-1] for row in counts if row not in new)
            over = [(start, end) for start, end in over if bisect_left(kept, start) == bisect_left(kept, end)]
        if over:
            late = [(row, -count) for row, count in counts.items() if any(s <= row[-1] < e for s, e in over)]
            self._rows.apply({key: late}, self.context.epoch)
            self._late.drop(self._changes([(row, -weight) for row, weight in late]), self.inputs[0])
            found = [session for session in found if session not in over]
        self._keep_sessions(key, found)

    def _changes(self, rows: list[tuple[Row, int]]) -> Changes:
        """Held rows, which have their local time behind them, as they came."""
        batch = thawed_rows([row[:-1] for row, _ in rows], schema_of(self.inputs[0]))
        return Changes(batch, np.array([weight for _, weight in rows], np.int64))

    def _keep_sessions(self, key: Any, sessions: list[tuple[int, int]]) -> None:
        self.backend.current_key = key
        known = self._sessions.value() or ()
        self._sessions.update(tuple(sessions) or None)
        timers = self._timers
        ends, ends_before = {self._last_ms(each) for each in sessions}, {self._last_ms(each) for each in known}
        for end in sorted(ends_before - ends):
            timers.delete(end, key)
        for end in sorted(ends - ends_before):
            timers.register(end, key)

    def _closed(self, key: Any, held: list[Row]) -> list[Closed]:
        """Take the sessions of a key that are over out of state, but for their rows."""
        self.backend.current_key = key
        sessions = self._sessions.value() or ()
        over = [each for each in sessions if self._last_ms(each) <= self._passed()]
        rows = sorted(held, key=_moment)
        moments = [row[-1] for row in rows]
        self._keep_sessions(key, [each for each in sessions if each not in over])
        return [
            Closed(start, end, rows[bisect_left(moments, start) : bisect_left(moments, end)]) for start, end in over
        ]

    def _emit(self, closed: list[Closed]) -> None:
        rows = thawed_rows([row[:-1] for session in closed for row in session.rows], schema_of(self.inputs[0]))
        sizes = [len(session.rows) for session in closed]
        starts = np.repeat(np.array([session.start_ms for session in closed], np.int64), sizes)
        ends = np.repeat(np.array([session.end_ms for session in closed], np.int64), sizes)
        columns = [*rows.columns, *self._bounds.of(starts, ends)]
        self.emit(Changes(pa.RecordBatch.from_arrays(columns, schema=self.schema)))

    def _sessions_of(self, moments: list[int]) -> list[tuple[int, int]]:
        """Sessions as (start, end) in milliseconds of local time."""
        found: list[tuple[int, int]] = []
        for moment in moments:
            if found and moment <= found[-1][1]:
                found[-1] = found[-1][0], moment + self._gap_ms
            else:
                found.append((moment, moment + self._gap_ms))
        return found

    def _last_ms(self, session: tuple[int, int]) -> int:
        """The last millisecond of a session on the clock of watermarks."""
        return self._end_ms(session[1] * 1000) - 1

    @property
    def _timers(self) -> TimerQueue:
        return self.backend.event_timers if self._event_time else self.backend.processing_timers

    def _passed(self) -> int:
        """Sessions whose last millisecond is not after this one are over.

        By processing time a session goes on with a row at its very end, and such rows may come all through that
        millisecond.
        """
        by_watermark = self._event_time or self.ended
        return self.context.watermark if by_watermark else self.context.processing_time_ms - 2

    def next_event_timer(self) -> int | None:
        return self.backend.event_timers.peek()

    def next_processing_timer(self) -> int | None:
        due = self.backend.processing_timers.peek()
        return None if due is None else due + 2


def _moment(row: Row) -> int:
    moment: int = row[-1]
    return moment
