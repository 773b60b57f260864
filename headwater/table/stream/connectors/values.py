"""Tables of Python values: from_elements(), from_pandas() and VALUES."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.datastream.connectors.collection import CollectionSource
from headwater.table.stream.changes import Changes
from headwater.table.stream.connectors.contract import TableSource
from headwater.table.stream.operators.to_changes import Converter
from headwater.table.stream.rows import frozen_rows, thawed_rows


@dataclass(frozen=True)
class FrozenConverter(Converter):
    """Records that are rows in the form of `frozen_rows`."""

    schema: pa.Schema

    def convert(self, records: list[Any], timestamps: list[int | None] | None, now_ms: int) -> Changes:
        return Changes(thawed_rows(records, self.schema))


def values_source(table: pa.Table, schema: pa.Schema) -> TableSource:
    """The rows of an Arrow table, in order. `schema` names columns by place."""
    rows: list[Any] = []
    for batch in table.to_batches():
        arrays = [column.cast(each.type) for column, each in zip(batch.columns, schema, strict=True)]
        rows += frozen_rows(pa.RecordBatch.from_arrays(arrays, schema=schema)) if arrays else [()] * batch.num_rows
    return TableSource(CollectionSource(rows), FrozenConverter(schema), parallelism=1)
