"""ORDER BY: with LIMIT, the first rows of a table that changes; by time, the order in which rows are handed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headwater.table.plan.expressions import Column, SortKey
from headwater.table.stream.changes import Changes, schema_of
from headwater.table.stream.operators.groups import Groups
from headwater.table.stream.operators.over_time import TimedOverOperator
from headwater.table.stream.operators.rank import RankOperator
from headwater.table.stream.operators.row_state import Row
from headwater.table.stream.operators.sort_order import order_codes, order_columns, sorted_groups


class SortLimitOperator(RankOperator):
    """ORDER BY with OFFSET and LIMIT (None: none) over the whole table: all rows have one key."""

    def __init__(
        self,
        input: Sequence[Column],
        order: Sequence[SortKey],
        offset: int | None,
        limit: int | None,
        columns: Sequence[Column],
        *,
        ttl_ms: int | None = None,
        zone: str = "UTC",
        append_only: bool = False,
    ) -> None:
        first = (offset or 0) + 1
        last = None if limit is None else first + limit - 1
        super().__init__(
            input,
            (),
            order,
            first,
            last,
            None,
            "ROW_NUMBER",
            columns,
            ttl_ms=ttl_ms,
            zone=zone,
            append_only=append_only,
        )


class TemporalSortOperator(TimedOverOperator):
    """ORDER BY a time attribute, and maybe more: hands rows on in this order. Append-only. All rows have one key.

    Rows wait for the watermark (by processing time, they do not). Late rows, and rows without a time, are dropped.
    """

    def __init__(
        self,
        input: Sequence[Column],
        time: Column,
        order: Sequence[SortKey],
        columns: Sequence[Column],
        *,
        processing_time: bool = False,
        zone: str = "UTC",
    ) -> None:
        super().__init__(input, (), (), columns, time, processing_time=processing_time, zone=zone)
        self._order = order_columns(order, input)

    def _emit_rows(self, keys: list[Any], due: list[list[Row]]) -> None:
        groups = Groups.of(due, schema_of(self.inputs[0]))
        found = sorted_groups(groups.numbers(), order_codes(groups.rows, self._order))
        rows = groups.rows.take(pa.array(found.order))
        self.emit(Changes(pa.RecordBatch.from_arrays(rows.columns, schema=self.schema)))
