"""OVER with ORDER BY a time attribute: rows wait for their time, then are final. Keeps what windows look back on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.common.ids import MAX_WATERMARK
from headwater.state.api import MapState, ValueState
from headwater.state.descriptors import MapStateDescriptor, ValueStateDescriptor
from headwater.state.timers import TimerQueue
from headwater.table.plan.expressions import Column, ColumnRef, WindowCall
from headwater.table.plan.window_functions import WINDOW_FUNCTIONS
from headwater.table.stream.changes import Changes, schema_of
from headwater.table.stream.keys import KeyColumns
from headwater.table.stream.operators.aggregate_state import ttl_config, with_ttl
from headwater.table.stream.operators.base import EpochOperator
from headwater.table.stream.operators.groups import Groups
from headwater.table.stream.operators.late_rows import LateDrop
from headwater.table.stream.operators.over_frames import range_distance
from headwater.table.stream.operators.over_functions import OverCall
from headwater.table.stream.operators.over_running import RANKS, RunningAggregate, RunningRank
from headwater.table.stream.operators.row_state import Row, by_key
from headwater.table.stream.operators.windows_time import time_ms
from headwater.table.stream.rows import frozen_rows
from headwater.table.types.arrow import to_arrow

_LOOKS_BACK = ("UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW")


def looks_back(call: WindowCall, time: Column) -> bool:
    """Whether a row's value is final once all rows up to its time are there."""
    if len(call.order_by) != 1 or call.order_by[0].descending:
        return False
    key = call.order_by[0].expression
    if not isinstance(key, ColumnRef) or key.column.id != time.id:
        return False
    name = call.call.name
    if name in WINDOW_FUNCTIONS:
        return name in RANKS or (name == "LAG" and call.call.binding.literal(1, 1) >= 0)
    return call.frame is None or call.frame.end.kind in _LOOKS_BACK


@dataclass(frozen=True)
class Reach:
    """How far a call looks back: some rows, some time (in the units of the time column), or to the beginning."""

    rows: int = 0
    time: int = 0
    all: bool = False


class TimedOverOperator(EpochOperator):
    """Emits each row once, with its results, when the watermark reaches its time. Append-only in and out.

    By processing time, rows are emitted in the epoch in which they come. Late rows, and rows without a time, are
    dropped; late ones are counted. Keyed by `partition`. Windows from the beginning keep accumulators, not rows.
    """

    drops_late = True

    def __init__(
        self,
        input: Sequence[Column],
        partition: Sequence[Column],
        calls: Sequence[tuple[Column, WindowCall]],
        columns: Sequence[Column],
        time: Column,
        *,
        processing_time: bool = False,
        ttl_ms: int | None = None,
        zone: str = "UTC",
    ) -> None:
        super().__init__([input], columns, zone)
        places = {column.id: place for place, column in enumerate(input)}
        self.keys = KeyColumns([places[column.id] for column in partition])
        self._time = places[time.id]
        self._units = 1_000_000 if to_arrow(time.type).unit == "ns" else 1000
        """How many units of the time column a millisecond has."""
        self._calls = tuple(call for _, call in calls)
        self._processing_time = processing_time
        self._ttl_ms = ttl_ms

    def open(self) -> None:
        super().open()
        ttl, backend, inputs = ttl_config(self._ttl_ms), self.backend, self.inputs[0]
        self._pending: MapState[int, tuple[Row, ...]] = backend.get_state(MapStateDescriptor("pending"))
        history = with_ttl(ValueStateDescriptor("history"), ttl)
        self._history: ValueState[tuple[Row, ...]] = backend.get_state(history)  # type: ignore[assignment]
        self._computed: list[OverCall | RunningAggregate | RunningRank] = []
        self._reach = Reach()
        running: dict[Any, RunningAggregate | RunningRank] = {}  # equal calls share their state
        for call in self._calls:
            made = OverCall(call, inputs)
            if call.call.name in RANKS:
                rank = RunningRank(call.call.name, backend, inputs, call, ttl)
                self._computed.append(running.setdefault(rank.meaning, rank))
            elif RunningAggregate.fits(call, made):
                aggregate = RunningAggregate(call, made, backend, ttl)
                self._computed.append(running.setdefault(aggregate.meaning, aggregate))
            else:
                self._computed.append(made)
                self._reach = _further(self._reach, self._reach_of(call))
        self._late = LateDrop(self, self.keeps_late)

    def _reach_of(self, call: WindowCall) -> Reach:
        if call.call.name == "LAG":
            return Reach(rows=call.call.binding.literal(1, 1))
        if call.frame is None or call.frame.start.kind == "UNBOUNDED PRECEDING":
            return Reach(all=True)
        if call.frame.start.offset is None:
            return Reach()
        if call.frame.unit == "ROWS":
            return Reach(rows=call.frame.start.offset.value)
        kind = to_arrow(self.inputs[0][self._time].type)
        return Reach(time=range_distance(call.frame.start.offset, kind))

    def finish(self, taken: list[Changes]) -> None:
        due = self._taken_now(taken[0])
        for key in dict.fromkeys(key for _, key, _ in self._timers.pop_due(self._now())):
            waited = self._waited(key)
            due[key] = [*waited, *due.get(key, ())]
        for rows in due.values():
            rows.sort(key=self._moment)  # stable: of equal times, those that came first are first
        keys = [key for key, rows in due.items() if rows]
        if keys:
            self._emit_rows(keys, [due[key] for key in keys])
        for key in due.keys() - {*keys}:
            self._remember(key, self._known(key))

    # -- rows and their time

    @property
    def _timers(self) -> TimerQueue:
        return self.backend.processing_timers if self._processing_time else self.backend.event_timers

    def _now(self) -> int:
        return self.context.processing_time_ms if self._processing_time else self.context.watermark

    def _moment(self, row: Row) -> int:
        moment: int = row[self._time]
        return moment

    def _taken_now(self, changes: Changes) -> dict[Any, list[Row]]:
        """The rows whose time has come, by key. The others wait, but for those that are late."""
        times = changes.rows.column(self._time)
        if times.null_count:
            changes = changes.filter(times.is_valid())
            times = changes.rows.column(self._time)
        if not self._processing_time and len(changes):
            moments = time_ms(times)
            late = moments <= self.watermark_before
            if late.any():
                self._late.drop(changes.take(np.flatnonzero(late)), self.inputs[0])
            self._wait(changes.take(np.flatnonzero(moments > self.context.watermark)))
            changes = changes.take(np.flatnonzero(~late & (moments <= self.context.watermark)))
        return {key: _repeated(rows) for key, rows in self._by_key(changes).items()}

    def _by_key(self, changes: Changes) -> dict[Any, list[tuple[Row, int]]]:
        return by_key(self.keys.of(changes), frozen_rows(changes.rows), changes.weight_array().tolist())

    def _wait(self, changes: Changes) -> None:
        for key, rows in self._by_key(changes).items():
            self.backend.current_key = key
            at: dict[int, list[Row]] = {}
            for row in _repeated(rows):
                at.setdefault(self._moment(row), []).append(row)
            for moment, held in at.items():
                self._pending.put(moment, (*(self._pending.get(moment) or ()), *held))
                self._timers.register(moment // self._units, key)

    def _waited(self, key: Any) -> list[Row]:
        """Take out the rows of a key that have waited long enough."""
        self.backend.current_key = key
        found: list[Row] = []
        for moment in [each for each in self._pending.keys() if each // self._units <= self._now()]:  # noqa: SIM118
            found += self._pending.get(moment) or ()
            self._pending.remove(moment)
        return found

    # -- what is emitted, and what is kept

    def _known(self, key: Any) -> tuple[Row, ...]:
        self.backend.current_key = key
        return self._history.value() or ()

    def _emit_rows(self, keys: list[Any], due: list[list[Row]]) -> None:
        schema = schema_of(self.inputs[0])
        known = [self._known(key) for key in keys]
        new = Groups.of(due, schema)
        both = Groups.of([[*old, *rows] for old, rows in zip(known, due, strict=True)], schema)
        sizes = [size for old, rows in zip(known, due, strict=True) for size in (len(old), len(rows))]
        is_new = pa.array(np.flatnonzero(np.repeat(np.tile([False, True], len(keys)), sizes)))
        results: dict[int, pa.Array] = {}
        for call in self._computed:
            if isinstance(call, OverCall):
                values = call.results(both.rows, both.numbers(), self.frame(both.rows.num_rows))
                results[id(call)] = values.take(is_new)
            elif id(call) not in results:
                results[id(call)] = call.results(keys, new, self.frame(new.rows.num_rows))
        columns = [*new.rows.columns, *(results[id(call)] for call in self._computed)]
        self.emit(Changes(pa.RecordBatch.from_arrays(columns, schema=self.schema)))
        for key, old, rows in zip(keys, known, due, strict=True):
            self._remember(key, (*old, *rows))

    def _remember(self, key: Any, rows: Sequence[Row]) -> None:
        """Keep of the rows that were emitted what windows of later rows may have."""
        reach = self._reach
        if self._now() == MAX_WATERMARK:
            rows = ()
        elif not reach.all:
            # Later rows have a time after the watermark; by processing time, now or after it.
            next_ms = self._now() if self._processing_time else self._now() + 1
            oldest = next_ms * self._units - reach.time
            place = next((n for n, row in enumerate(rows) if self._moment(row) >= oldest), len(rows))
            rows = rows[min(place if reach.time else len(rows), max(len(rows) - reach.rows, 0)) :]
            if rows and reach.time:
                # Once more when the youngest is out of reach.
                self._timers.register((self._moment(rows[-1]) + reach.time) // self._units, key, "forget")
        self.backend.current_key = key
        if rows or self._history.value() is not None:
            self._history.update(tuple(rows) or None)

    def next_event_timer(self) -> int | None:
        return self.backend.event_timers.peek()

    def next_processing_timer(self) -> int | None:
        return self.backend.processing_timers.peek()


def _repeated(rows: Iterable[tuple[Row, int]]) -> list[Row]:
    return [row for row, weight in rows for _ in range(weight)]


def _further(one: Reach, other: Reach) -> Reach:
    return Reach(max(one.rows, other.rows), max(one.time, other.time), one.all or other.all)
