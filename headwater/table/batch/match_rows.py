"""MATCH_RECOGNIZE over the rows of a batch: the operator of streams, in each of Spark's partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.common.ids import MAX_WATERMARK
from headwater.operators.base import OperatorContext
from headwater.state.heap.backend import HeapKeyedStateBackend
from headwater.table.batch.spark_expressions import column_name
from headwater.table.plan.expressions import ColumnRef
from headwater.table.plan.match import Match
from headwater.table.plan.nodes import Values
from headwater.table.stream.changes import Changes, schema_of
from headwater.table.stream.operators.match import MatchOperator

_BATCH = "batch"


class MatchRows:
    """From the rows of whole partitions of PARTITION BY, in the order of ORDER BY, to those of the matches.

    `now_ms`: when the query started. Columns come in the order of the input's, with Spark's types for them.
    """

    def __init__(self, node: Match, zone: str, now_ms: int) -> None:
        self._columns = node.input.columns
        # Rows of one millisecond keep the order in which they come.
        self._node = replace(node, input=Values((), self._columns), order_by=node.order_by[:1])
        self._zone = zone
        self._now_ms = now_ms
        order = node.order_by[0].expression
        assert isinstance(order, ColumnRef)
        self._time = self._columns.index(order.column)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        operator, found = MatchOperator(self._columns, self._node, zone=self._zone), _Found()
        state = HeapKeyedStateBackend(_BATCH, 1, range(1))
        context = OperatorContext(_BATCH, _BATCH, 0, 1, 1, keyed_backend=state, processing_time_ms=self._now_ms)
        operator.setup(context, found)
        operator.open()
        schema = schema_of(self._columns)
        per_ms = {"us": 1000, "ns": 1_000_000}[schema.field(self._time).type.unit]
        for batch in batches:
            if not batch.num_rows:
                continue
            arrays = [each.cast(field.type) for each, field in zip(batch.columns, schema, strict=True)]
            rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
            last = pc.max(rows.column(self._time).cast(pa.int64())).as_py() or 0  # the operator refuses a NULL
            yield from self._epoch(operator, state, found, [Changes(rows)], last // per_ms - 1)
        yield from self._epoch(operator, state, found, [], MAX_WATERMARK)
        operator.close()

    def _epoch(
        self, operator: MatchOperator, state: HeapKeyedStateBackend, found: _Found, rows: list[Any], watermark: int
    ) -> list[pa.RecordBatch]:
        """Match what is before the watermark. Rows that come later are behind it."""
        state.begin_epoch()
        operator.process_batch(rows, None)
        operator.process_watermark(watermark)
        operator.end_epoch()
        operator.prepare_commit()
        state.commit_epoch()
        return list(map(self._for_spark, found.take()))

    def _for_spark(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """With Spark's names; it has no TIME, and gets the milliseconds."""
        arrays = [each.cast(pa.int32()) if pa.types.is_time32(each.type) else each for each in rows.columns]
        return pa.RecordBatch.from_arrays(arrays, [column_name(column) for column in self._node.columns])


class _Found:
    """The operator's output."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []

    def take(self) -> list[pa.RecordBatch]:
        taken, self._batches = self._batches, []
        return taken

    def emit(self, values: list[Changes], timestamps: Any) -> None:
        self._batches += [changes.rows for changes in values]

    def emit_side(self, tag_id: str, values: list[Any], timestamps: Any) -> None:
        """Nothing comes here."""

    def emit_watermark(self, watermark: int) -> None:
        """Nobody waits for it."""

    def emit_idle(self, idle: bool) -> None:
        """Nobody waits for it."""
