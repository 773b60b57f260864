"""The rows of some keys, put together for one computation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.table.stream.operators.row_state import Row
from headwater.table.stream.rows import thawed_rows


class Groups:
    """The rows of some keys, sorted by key. `offsets[i]` is where the rows of key i begin; one more at the end."""

    def __init__(self, rows: pa.RecordBatch, offsets: np.ndarray) -> None:
        self.rows = rows
        self.offsets = offsets

    @staticmethod
    def of(rows_by_key: Sequence[Sequence[Row]], schema: pa.Schema) -> Groups:
        offsets = np.zeros(len(rows_by_key) + 1, np.int64)
        np.cumsum([len(rows) for rows in rows_by_key], out=offsets[1:])
        return Groups(thawed_rows([row for rows in rows_by_key for row in rows], schema), offsets)

    def numbers(self) -> np.ndarray:
        """The number of each row's key."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
