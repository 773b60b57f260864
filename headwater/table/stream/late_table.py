"""The table that keeps the late rows of a job: `headwater.sql.late-rows-table`."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.common.types import RowKind
from headwater.datastream.formats.json import JsonRowSerializationSchema
from headwater.graph.transformation import SideOutputTransformation, Transformation, UnionTransformation
from headwater.table.catalog.objects import CatalogTable, Identifier
from headwater.table.plan.context import new_column
from headwater.table.plan.expressions import Column
from headwater.table.stream.changes import Changes
from headwater.table.stream.connectors.contract import Field
from headwater.table.stream.connectors.formats import TextRows, row_info
from headwater.table.stream.connectors.text_formats import PlainWriter
from headwater.table.stream.operators.base import ChangesOperator
from headwater.table.stream.operators.late_rows import LATE_ROWS, LateRows
from headwater.table.stream.physical import Physical, Traits
from headwater.table.stream.planner import StreamPlanner
from headwater.table.stream.planner_sinks import into_table
from headwater.table.types.logical import STRING, LocalZonedTimestampType, LogicalType

COLUMNS: dict[str, LogicalType] = {
    "operator_name": STRING,
    "row_kind": STRING,
    "row_data": STRING,
    "watermark_time": LocalZonedTimestampType(precision=3),
}
"""What the table may have: the operator that dropped the row, `+I` or `-D`, the row as JSON, and the watermark that had
passed it."""


@dataclass(frozen=True)
class LateTable:
    """The table's name, and what it is in the catalog."""

    identifier: Identifier
    table: CatalogTable

    def plan(self, planner: StreamPlanner, tellers: Sequence[Transformation]) -> Physical:
        """The way of late rows from the operators that tell them into the table."""
        columns = []
        for each in self.table.schema.sink_columns():
            wanted = COLUMNS.get(each.name)
            if wanted is None or each.type.with_nullable(True) != wanted:
                known = ", ".join(f"{name} {type_.sql()}" for name, type_ in COLUMNS.items())
                raise SqlError(
                    f"table '{self.identifier}' gets the late rows, and its column '{each.name} {each.type.sql()}' is"
                    f" none of what is known of them; these are: {known}"
                )
            columns.append(new_column(each.name, each.type))
        told = tuple(
            SideOutputTransformation(name="late rows", upstream=each, tag_id=LATE_ROWS, output_type=None)
            for each in tellers
        )
        rows = Physical(
            "LateRows",
            "",
            tuple(columns),
            factory=partial(LateRowsOperator, tuple(columns), planner.zone),
            traits=Traits(rows="late rows", bounded=False),
            stream=UnionTransformation(name="late rows", upstreams=told),
        )
        return into_table(planner, rows, self.identifier, self.table)


class LateRowsOperator(ChangesOperator):
    """Makes rows of the table from what operators dropped."""

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        for late in values:
            self.emit(Changes(self._rows(late)))

    def _rows(self, late: LateRows) -> pa.RecordBatch:
        times = np.abs(late.changes.weight_array())
        taken_back = np.repeat(late.changes.weight_array() < 0, times)
        passed = datetime.datetime.fromtimestamp(late.watermark_ms / 1000, datetime.UTC)
        made: dict[str, Any] = {
            "operator_name": [late.operator] * len(taken_back),
            "row_kind": np.where(taken_back, "-D", "+I").tolist(),
            "row_data": np.repeat(np.array(_texts(late), object), times).tolist(),
            "watermark_time": [passed] * len(taken_back),
        }
        arrays = [
            pa.array(made[column.name], field.type) for column, field in zip(self.columns, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _texts(late: LateRows) -> list[str]:
    """Each row as a JSON object."""
    names = _names(late.columns)
    fields = tuple(Field(name, column.type) for name, column in zip(names, late.columns, strict=True))
    json = JsonRowSerializationSchema.builder().with_type_info(row_info(fields)).build()
    writer = PlainWriter(json, fields)
    rows = late.changes.rows
    encoder = TextRows(names, tuple(column.type for column in late.columns))
    return [writer.serialize(row).decode() for row in encoder.encode(rows, [RowKind.INSERT] * rows.num_rows)]


def _names(columns: Sequence[Column]) -> tuple[str, ...]:
    """The columns' names; of those that share one, all but the first are numbered."""
    found: dict[str, None] = {}
    for column in columns:
        name, number = column.name, 0
        while name in found:
            name, number = f"{column.name}{number}", number + 1
        found[name] = None
    return tuple(found)
