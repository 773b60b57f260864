"""Top-N and deduplication: the rows of a partition whose rank is within bounds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.table.plan.expressions import Column, SortKey
from headwater.table.stream.changes import Changes, concatenated, schema_of
from headwater.table.stream.keys import KeyColumns
from headwater.table.stream.numbering import numbered
from headwater.table.stream.operators.base import EpochOperator
from headwater.table.stream.operators.groups import Groups
from headwater.table.stream.operators.rank_rows import RowList, key_rows
from headwater.table.stream.operators.row_state import Row, by_key
from headwater.table.stream.operators.sort_order import order_codes, order_columns, sorted_groups
from headwater.table.stream.operators.windows_held import HeldWindows
from headwater.table.stream.rows import frozen_rows
from headwater.table.types.logical import is_temporal


class RankOperator(EpochOperator):
    """Keeps the rows with a rank from `first` to `last` (None: to the end) in their partition. Keyed by `partition`.

    `columns` are columns of the input and `rank_column`, in any order. Rows with equal order keep that of their
    coming, but with `first = last = 1` and a time that descends ("keep the last row") the latest comes first, as in
    Flink.

    `append_only`: the input never takes rows back, so that only rows that can still be within bounds are kept.

    `window_end`, one of `partition`: the rows of a window are emitted once, when it is over; see `HeldWindows`.
    """

    drops_late = True

    def __init__(
        self,
        input: Sequence[Column],
        partition: Sequence[Column],
        order: Sequence[SortKey],
        first: int,
        last: int | None,
        rank_column: Column | None,
        kind: str,
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
        self.keys = KeyColumns([places[column.id] for column in partition])
        self._order = order_columns(order, input)
        self._first, self._last, self._kind = first, last, kind
        self._places = [
            None if rank_column is not None and column.id == rank_column.id else places[column.id] for column in columns
        ]
        self._latest_first = bool(
            first == last == 1 and order and order[0].descending and is_temporal(order[0].expression.type)
        )
        self._ttl_ms = ttl_ms if window_end is None else None
        self._bounded = append_only and last is not None
        self._window_end, self._event_time, self._zoned = window_end, time == "event", zoned

    def open(self) -> None:
        super().open()
        self._rows = key_rows(self.backend, "rows", self._ttl_ms, few=self._bounded)
        self._held: HeldWindows | None = None
        if self._window_end is not None:
            self._held = HeldWindows(self, self.keys, self._window_end, self._event_time, self._zoned)

    def finish(self, taken: list[Changes]) -> None:
        changes = taken[0] if self._held is None else self._held.in_time(taken[0])
        keys, out = self._merged(changes) if self._bounded else self._updated(changes.netted())
        if self._held is None:
            if out:
                self.emit(concatenated(out, self.schema).netted())
            return
        self._held.hold(keys)
        if keys := self._held.due():
            self.emit(Changes(self._within(self._gathered(keys))))
            self._take_away(keys, self._rows.rows(keys))

    def _updated(self, changes: Changes) -> tuple[list[Any], list[Changes]]:
        """Bring the rows of keys up to date. Return the keys and, but for windows, what that changes."""
        changed = by_key(self.keys.of(changes), frozen_rows(changes.rows), changes.weight_array().tolist())
        keys = list(changed)
        if self._held is not None or not keys:
            self._rows.apply(changed, self.context.epoch)
            return keys, []
        gone = self._within(self._gathered(keys))
        self._rows.apply(changed, self.context.epoch)
        return keys, [Changes(gone).negated(), Changes(self._within(self._gathered(keys)))]

    def _merged(self, changes: Changes) -> tuple[list[Any], list[Changes]]:
        """The same for rows that only come: those that are kept are read once."""
        new = changes.rows
        if changes.weights is not None:
            new = new.take(pa.array(np.repeat(np.arange(len(changes)), changes.weights), pa.int64()))
        if not new.num_rows:
            return [], []
        numbers, firsts = numbered([new.column(place) for place in self.keys.places], new.num_rows)
        keys = self.keys.of(Changes(new.take(pa.array(firsts))))
        held = self._rows.rows(keys)
        groups = Groups.of(held, new.schema)
        old = groups.rows.num_rows
        rows = pa.concat_batches([groups.rows, new])
        numbers = np.concatenate([groups.numbers(), numbers])
        codes = order_codes(rows, self._order)
        before, after = np.zeros((2, len(numbers)), np.int64)
        found = sorted_groups(numbers[:old], [each[:old] for each in codes], self._latest_first)
        before[found.order] = found.of_kind(self._kind)
        found = sorted_groups(numbers, codes, self._latest_first)
        after[found.order] = found.of_kind(self._kind)
        last = self._last or 0
        before[before > last] = after[after > last] = 0

        self._keep(keys, held, new, numbers, np.flatnonzero(after))
        if self._held is not None:
            return keys, []
        before[before < self._first] = after[after < self._first] = 0
        differ = before != after if None in self._places else (before > 0) != (after > 0)
        gone, come = np.flatnonzero(differ & (before > 0)), found.order[(differ & (after > 0))[found.order]]
        out = [Changes(self._output(rows.take(pa.array(gone)), before[gone])).negated()] if len(gone) else []
        return keys, [*out, Changes(self._output(rows.take(pa.array(come)), after[come]))]

    def _keep(
        self, keys: list[Any], held: list[list[Row]], new: pa.RecordBatch, numbers: np.ndarray, kept: np.ndarray
    ) -> None:
        """Store the rows at the places `kept` of what is held and new, whose keys have these numbers.

        A row behind the last never comes back. A key of which no row that came is kept has what it had.
        """
        flat = list(chain.from_iterable(held))
        written = np.zeros(len(keys), np.bool_)
        written[numbers[kept[kept >= len(flat)]]] = True
        written |= self._ttl_ms is not None
        kept = kept[written[numbers[kept]]]
        kept = kept[np.argsort(numbers[kept], kind="stable")]
        came = iter(frozen_rows(new.take(pa.array(kept[kept >= len(flat)] - len(flat)))))
        rows = [flat[place] if place < len(flat) else next(came) for place in kept.tolist()]
        assert isinstance(self._rows, RowList)
        self._rows.replace(
            list(compress(keys, written)), rows, np.bincount(numbers[kept], minlength=len(keys))[written]
        )

    def _take_away(self, keys: Sequence[Any], rows: Sequence[Sequence[Row]]) -> None:
        changed = {key: [(row, -1) for row in of_key] for key, of_key in zip(keys, rows, strict=True)}
        self._rows.apply(changed, self.context.epoch)

    def _gathered(self, keys: Sequence[Any]) -> Groups:
        return Groups.of(self._rows.rows(keys), schema_of(self.inputs[0]))

    def _within(self, groups: Groups) -> pa.RecordBatch:
        """The output of these rows."""
        found = sorted_groups(groups.numbers(), order_codes(groups.rows, self._order), self._latest_first)
        ranks = found.of_kind(self._kind)
        within = ranks >= self._first if self._last is None else (ranks >= self._first) & (ranks <= self._last)
        return self._output(groups.rows.take(pa.array(found.order[within])), ranks[within])

    def _output(self, rows: pa.RecordBatch, ranks: np.ndarray) -> pa.RecordBatch:
        ranked = pa.array(ranks)
        columns = [ranked if place is None else rows.column(place) for place in self._places]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def next_event_timer(self) -> int | None:
        return self.backend.event_timers.peek()

    def next_processing_timer(self) -> int | None:
        return self.backend.processing_timers.peek()
