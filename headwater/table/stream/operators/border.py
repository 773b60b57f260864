"""Where a table becomes records of a DataStream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.common.types import RowKind
from headwater.table.plan.expressions import Column
from headwater.table.stream.operators.base import ChangesOperator
from headwater.table.stream.operators.join_time import times_ms
from headwater.table.stream.operators.sink import Encoder


class ToRecordsOperator(ChangesOperator):
    """Inserted rows as records. `time`: the column whose value becomes the record's timestamp."""

    def __init__(self, columns: Sequence[Column], encoder: Encoder, time: int | None = None) -> None:
        super().__init__(columns)
        self.encoder = encoder
        self.time = time

    def open(self) -> None:
        self.encoder.open()

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        for changes in values:
            rows = changes.rows
            if changes.weights is not None:
                if len(changes) and changes.weights.min() < 0:
                    raise SqlError("a row was taken back in a query that the planner took for append-only")
                rows = rows.take(pa.array(np.repeat(np.arange(len(changes)), changes.weights), pa.int64()))
            stamps = None if self.time is None else times_ms(rows.column(self.time)).tolist()
            self.output.emit(self.encoder.encode(rows, [RowKind.INSERT] * rows.num_rows), stamps)
