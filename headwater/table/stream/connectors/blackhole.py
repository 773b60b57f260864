"""Rows that are computed and forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headwater.common.types import RowKind
from headwater.datastream.connectors.function_sink import DiscardSink
from headwater.table.stream.connectors.contract import ChangelogMode, Connector, TableContext, TableSink
from headwater.table.stream.operators.sink import Encoder


class Forget(Encoder):
    def encode(self, rows: pa.RecordBatch, kinds: Sequence[RowKind]) -> list[Any]:
        return []


class BlackholeConnector(Connector):
    def sink(self, context: TableContext) -> TableSink:
        context.options.ignored("sink.parallelism")
        return TableSink(DiscardSink(), Forget(), ChangelogMode.ALL, uses_key=False)
