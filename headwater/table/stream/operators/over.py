"""OVER: functions of the rows around each row. Three ways, chosen by `over_operator`.

By time (`over_time.py`) if rows are ordered by a time attribute and windows look back only: rows are final when they
are emitted. Else all rows of a touched partition are computed anew, and the difference is handed on: right for any
order and frame, and for updating inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.table.plan.expressions import Column, ColumnRef, WindowCall
from headwater.table.stream.changes import Changes, concatenated, schema_of
from headwater.table.stream.keys import KeyColumns
from headwater.table.stream.operators.base import EpochOperator
from headwater.table.stream.operators.groups import Groups
from headwater.table.stream.operators.over_functions import OverCall
from headwater.table.stream.operators.over_time import TimedOverOperator, looks_back
from headwater.table.stream.operators.rank_rows import key_rows
from headwater.table.stream.operators.row_state import by_key
from headwater.table.stream.rows import frozen_rows


def partition_of(calls: Sequence[tuple[Column, WindowCall]]) -> tuple[Column, ...]:
    """The columns by which all calls partition. SqlError if they do not agree: they need operators of their own."""
    (first, *others) = [call.partition_by for _, call in calls]
    if any({*each} != {*first} for each in others):
        raise SqlError("calls with different PARTITION BY cannot be computed together")
    columns = [each.column for each in first if isinstance(each, ColumnRef)]
    return tuple(columns)  # a constant partitions nothing


def over_operator(
    input: Sequence[Column],
    calls: Sequence[tuple[Column, WindowCall]],
    columns: Sequence[Column],
    *,
    time: Column | None = None,
    processing_time: bool = False,
    ttl_ms: int | None = None,
    zone: str = "UTC",
) -> EpochOperator:
    """Make the operator. `time`: the input is append-only, and this is the time attribute of all ORDER BYs."""
    if time is not None and all(looks_back(call, time) for _, call in calls):
        return TimedOverOperator(
            input, partition_of(calls), calls, columns, time, processing_time=processing_time, ttl_ms=ttl_ms, zone=zone
        )
    return OverOperator(input, calls, columns, ttl_ms=ttl_ms, zone=zone)


class OverOperator(EpochOperator):
    """Computes touched partitions anew. Keyed by the calls' PARTITION BY, which must be the same.

    Gives `columns`: those of the input, then one per call. Rows of equal order are in order of coming.
    """

    def __init__(
        self,
        input: Sequence[Column],
        calls: Sequence[tuple[Column, WindowCall]],
        columns: Sequence[Column],
        *,
        ttl_ms: int | None = None,
        zone: str = "UTC",
    ) -> None:
        super().__init__([input], columns, zone)
        places = {column.id: place for place, column in enumerate(input)}
        self.keys = KeyColumns([places[column.id] for column in partition_of(calls)])
        self._calls = tuple(call for _, call in calls)
        self._ttl_ms = ttl_ms

    def open(self) -> None:
        super().open()
        self._rows = key_rows(self.backend, "rows", self._ttl_ms)
        self._computed = [OverCall(call, self.inputs[0]) for call in self._calls]

    def finish(self, taken: list[Changes]) -> None:
        changes = taken[0].netted()
        changed = by_key(self.keys.of(changes), frozen_rows(changes.rows), changes.weight_array().tolist())
        if not changed:
            return
        before = self._results(self._gathered(list(changed)))
        self._rows.apply(changed, self.context.epoch)
        after = self._results(self._gathered(list(changed)))
        self.emit(concatenated([Changes(before).negated(), Changes(after)], self.schema).netted())

    def _gathered(self, keys: list[object]) -> Groups:
        return Groups.of(self._rows.rows(keys), schema_of(self.inputs[0]))

    def _results(self, groups: Groups) -> pa.RecordBatch:
        numbers, frame = groups.numbers(), self.frame(groups.rows.num_rows)
        added = [call.results(groups.rows, numbers, frame) for call in self._computed]
        return pa.RecordBatch.from_arrays([*groups.rows.columns, *added], schema=self.schema)
