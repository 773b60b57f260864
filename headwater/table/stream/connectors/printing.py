"""The print connector: `+I[1, ann]` on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.common.typeinfo import Types
from headwater.common.types import RowKind
from headwater.datastream.connectors.print_sink import PrintSink
from headwater.table.batch.rows import java_text, to_python
from headwater.table.stream.connectors.contract import ChangelogMode, Connector, TableContext, TableSink
from headwater.table.stream.operators.sink import Encoder
from headwater.table.types.logical import LogicalType


@dataclass(frozen=True)
class ChangelogText(Encoder):
    """A line per row: its kind and its values, as Java prints them."""

    types: tuple[LogicalType, ...]

    def encode(self, rows: pa.RecordBatch, kinds: Sequence[RowKind]) -> list[Any]:
        columns = [
            [java_text(to_python(value, type_), type_) for value in column.to_pylist()]
            for column, type_ in zip(rows.columns, self.types, strict=True)
        ]
        values = zip(*columns, strict=True) if columns else ((),) * rows.num_rows
        return [f"{kind}[{', '.join(texts)}]" for kind, texts in zip(kinds, values, strict=True)]


class PrintConnector(Connector):
    def sink(self, context: TableContext) -> TableSink:
        options = context.options
        sink = PrintSink(
            options.text("print-identifier") or "", stderr=options.flag("standard-error"), type_info=Types.STRING()
        )
        return TableSink(sink, ChangelogText(context.types), ChangelogMode.ALL, context.sink_parallelism())
