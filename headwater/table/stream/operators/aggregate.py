"""GROUP BY: accumulators per group, touched once per epoch and group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.state.heap.key_index import IntegerKeys, some_of
from headwater.state.keys.key_groups import key_group
from headwater.table.plan.expressions import AggregateCall, Column
from headwater.table.stream.changes import Changes
from headwater.table.stream.keys import KeyColumns
from headwater.table.stream.operators.aggregate_calls import Call, call_meaning, call_of
from headwater.table.stream.operators.aggregate_differences import difference
from headwater.table.stream.operators.aggregate_groups import GroupedChanges
from headwater.table.stream.operators.aggregate_state import ttl_config
from headwater.table.stream.operators.aggregate_store import Accumulators, group_store
from headwater.table.stream.operators.base import EpochOperator
from headwater.table.stream.operators.windows_held import HeldWindows
from headwater.table.stream.rows import thawed_integers, thawed_rows


class GroupAggregateOperator(EpochOperator):
    """Groups rows and computes aggregates of each group. Keyed by `groups`, in order. DISTINCT: no calls.

    Gives `columns`: the groups, then a column per call. A group whose rows are all gone is gone. Without groups there
    is one row, from the first epoch on, even if there is no input; it does not expire.

    `append_only`: the input never takes rows back, so that MIN and MAX need no values.

    `window_end`, one of `groups`: results are held until the window is over, then emitted once, and forgotten. The end
    is compared with the watermark, or with processing time (`time`). `zoned`: the window was made from a TIMESTAMP_LTZ
    (PROCTIME() is one), so that its bounds are local times. When the input ends, all windows are over.
    """

    drops_late = True

    def __init__(
        self,
        input: Sequence[Column],
        groups: Sequence[Column],
        calls: Sequence[tuple[Column, AggregateCall]],
        columns: Sequence[Column],
        *,
        ttl_ms: int | None = None,
        zone: str = "UTC",
        window_end: Column | None = None,
        time: str = "event",
        zoned: bool = False,
        append_only: bool = False,
    ) -> None:
        super().__init__([input], columns, zone)
        places = {column.id: place for place, column in enumerate(input)}
        self.keys = KeyColumns([places[column.id] for column in groups])
        self._calls = tuple(call for _, call in calls)
        self._append_only = append_only
        self._ttl_ms = ttl_ms if groups and window_end is None else None
        self._window_end = window_end
        self._event_time = time == "event"
        self._zoned = zoned

    def open(self) -> None:
        super().open()
        ttl = ttl_config(self._ttl_ms)
        self._by_meaning: dict[str, Call] = {}
        self._results: list[Call | None] = []  # None: the number of the group's rows
        for call in self._calls:
            if call.name == "COUNT" and not (call.arguments or call.distinct or call.filter):
                self._results.append(None)
                continue
            meaning = call_meaning(call, self.inputs[0])
            if meaning not in self._by_meaning:
                made = self._by_meaning[meaning] = call_of(call, self.inputs[0], self._append_only)
                made.open(self.backend, ttl)
            self._results.append(self._by_meaning[meaning])
        self._groups = group_store(self.backend, list(self._by_meaning.values()), ttl)
        self._held: HeldWindows | None = None
        if self._window_end is not None:
            end, groups = self._window_end, self._groups
            self._held = HeldWindows(
                self, self.keys, end, self._event_time, self._zoned, groups.keys, shared=groups.in_arrays
            )
        self._has_one_row = not self.keys.places and (
            key_group((), self.context.max_parallelism) in self.backend.key_groups
        )

    def finish(self, taken: list[Changes]) -> None:
        changes = taken[0] if self._held is None else self._held.in_time(taken[0])
        epoch = GroupedChanges.of(changes, self.keys, self.frame(len(changes)))
        if self._has_one_row and not len(changes):
            epoch.keys = [()]
        if len(epoch.keys):
            self._update(epoch)
        if self._held is not None:
            self._emit_due()

    def _update(self, epoch: GroupedChanges) -> None:
        keys = epoch.keys
        self.backend.prefetch(keys)
        entries = self._groups.entries(keys)
        was = self._groups.present(entries)
        counts_before, before = self._groups.columns(entries)
        counts = pc.add(counts_before, pa.array(epoch.totals())) if epoch.rows.num_rows else counts_before
        after = {
            meaning: call.after(epoch, before[meaning], self.context.epoch)
            for meaning, call in self._by_meaning.items()
        }
        lives = np.ones(len(keys), np.bool_) if self._has_one_row else counts.to_numpy() > 0
        groups = [epoch.rows.column(place).take(pa.array(epoch.firsts)) for place in self.keys.places]
        results = self._finished(counts, after)
        if self._held is None:
            self.emit(difference(groups, self._finished(counts_before, before), results, was, lives, self.schema))
            kept = lives
        else:
            over = self._held.over(keys)
            nothing = np.zeros(len(keys), np.bool_)
            self.emit(difference(groups, results, results, nothing, lives & over, self.schema))
            kept = lives & ~over
            self._held.update(keys, was, kept)
        self._write(keys, entries, kept, counts, after)

    def _finished(self, counts: pa.Array, accumulators: Accumulators) -> list[pa.Array]:
        found = {meaning: call.finish(accumulators[meaning]) for meaning, call in self._by_meaning.items()}
        return [counts if call is None else found[call.meaning] for call in self._results]

    def _write(
        self, keys: Sequence[Any], entries: Any, kept: np.ndarray, counts: pa.Array, accumulators: Accumulators
    ) -> None:
        if not kept.all():
            gone = some_of(keys, np.flatnonzero(~kept))
            for call in self._by_meaning.values():
                call.clear(gone)
        self._groups.write(keys, entries, counts, accumulators, kept)

    def _emit_due(self) -> None:
        assert self._held is not None
        keys = self._held.batch_due()
        if not len(keys):
            return
        self.backend.prefetch(keys)
        entries = self._groups.entries(keys)
        results = self._finished(*self._groups.columns(entries))
        groups = self._thawed(keys)
        self.emit(Changes(pa.RecordBatch.from_arrays([*groups, *results], schema=self.schema)))
        self._groups.clear(keys, entries)
        for call in self._by_meaning.values():
            call.clear(keys)

    def _thawed(self, keys: Sequence[Any]) -> list[pa.Array]:
        """Keys as the columns that they were made of."""
        kinds = self.schema.types[: len(self.keys.places)]
        if isinstance(keys, IntegerKeys):
            return [thawed_integers(array, kind) for array, kind in zip(keys.arrays, kinds, strict=True)]
        rows = [(key,) for key in keys] if len(kinds) == 1 else keys
        schema = pa.schema([pa.field(str(at), kind) for at, kind in enumerate(kinds)])
        return list(thawed_rows(rows, schema).columns)

    def next_event_timer(self) -> int | None:
        return self.backend.event_timers.peek()

    def next_processing_timer(self) -> int | None:
        return self.backend.processing_timers.peek()
