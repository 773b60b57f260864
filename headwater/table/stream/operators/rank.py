"""Top-N and deduplication: the rows of a partition whose rank is within bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.table.plan.expressions import Column, SortKey
from headwater.table.stream.changes import Changes, concatenated, schema_of
from headwater.table.stream.keys import KeyColumns
from headwater.table.stream.numbering import numbered
from headwater.table.stream.operators.base import EpochOperator
from headwater.table.stream.operators.groups import Groups
from headwater.table.stream.operators.rank_rows import key_rows
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
        changes = self._candidates(changes) if self._bounded else changes.netted()
        changed = by_key(self.keys.of(changes), frozen_rows(changes.rows), changes.weight_array().tolist())
        keys = list(changed)
        if self._held is not None:
            self._apply(changed)
            self._held.hold(keys)
            keys = self._held.due()
        if not keys:
            return
        before = self._gathered(keys)
        if self._held is None:
            self._apply(changed)
            gone = Changes(self._within(before)).negated()
            come = Changes(self._within(self._gathered(keys)))
            self.emit(concatenated([gone, come], self.schema).netted())
        else:
            self.emit(Changes(self._within(before)))
            self._take_away(keys, self._rows.rows(keys))

    def _apply(self, changed: dict[Any, list[tuple[Row, int]]]) -> None:
        self._rows.apply(changed, self.context.epoch)
        if not self._bounded:
            return
        keys = list(changed)
        held = self._rows.rows(keys)
        groups = Groups.of(held, schema_of(self.inputs[0]))
        numbers = groups.numbers()
        beyond = self._beyond(groups.rows, numbers)
        surplus: dict[int, list[Row]] = {}
        for number, place in zip(numbers[beyond].tolist(), beyond.tolist(), strict=True):
            surplus.setdefault(number, []).append(held[number][place - groups.offsets[number]])
        self._take_away([keys[number] for number in surplus], list(surplus.values()))

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
        rows = groups.rows.take(pa.array(found.order[within]))
        ranked = pa.array(ranks[within])
        columns = [ranked if place is None else rows.column(place) for place in self._places]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _beyond(self, rows: pa.RecordBatch, numbers: np.ndarray) -> np.ndarray:
        """The places of rows that rank behind the last."""
        found = sorted_groups(numbers, order_codes(rows, self._order), self._latest_first)
        return found.order[found.of_kind(self._kind) > (self._last or 0)]

    def _candidates(self, changes: Changes) -> Changes:
        """The rows of an epoch that may be within bounds: no more per key than that."""
        numbers, _ = numbered([changes.rows.column(place) for place in self.keys.places], len(changes))
        beyond = self._beyond(changes.rows, numbers)
        return changes.take(np.delete(np.arange(len(changes)), beyond)) if len(beyond) else changes

    def next_event_timer(self) -> int | None:
        return self.backend.event_timers.peek()

    def next_processing_timer(self) -> int | None:
        return self.backend.processing_timers.peek()
