"""What travels between the operators of SQL: rows as Arrow columns, each with a weight.

A weight of +n says that the row comes n times, -n that it goes n times. So a table is the sum of all changes to it, the
order of changes within an epoch does not matter, and what comes and goes in one epoch can be cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headwater.table.stream.numbering import added_up, numbered
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType

Weights = np.ndarray[tuple[int], np.dtype[np.int64]]


class Typed(Protocol):
    """A column, or the field of a connector."""

    @property
    def type(self) -> LogicalType: ...


def schema_of(columns: Sequence[Typed]) -> pa.Schema:
    """The schema of rows with these columns. Fields are named by their place: `"0"`, `"1"`, ..."""
    return pa.schema([pa.field(str(place), to_arrow(column.type)) for place, column in enumerate(columns)])


def no_columns(rows: int) -> pa.RecordBatch:
    """That many rows without a column."""
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))


class Changes:
    """Changes to a table. `weights` is None if all are +1: then, and only then, every row is an insertion.

    Immutable. It is one record to the runtime, which routes it whole; `KeyColumns.split` cuts it by key.
    """

    __slots__ = ("rows", "weights")

    def __init__(self, rows: pa.RecordBatch, weights: Weights | None = None) -> None:
        self.rows = rows
        self.weights = weights

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def weight_array(self) -> Weights:
        return np.ones(len(self), np.int64) if self.weights is None else self.weights

    def take(self, places: np.ndarray) -> Changes:
        rows = self.rows.take(pa.array(places, pa.int64()))
        return Changes(rows, None if self.weights is None else self.weights[places])

    def filter(self, mask: pa.Array) -> Changes:
        """Keep the rows where `mask` is true. NULL is not true."""
        if self.weights is None:
            return Changes(self.rows.filter(mask))
        return self.take(np.flatnonzero(mask.fill_null(False).to_numpy(zero_copy_only=False)))

    def with_rows(self, rows: pa.RecordBatch) -> Changes:
        """Other columns for the same changes."""
        return Changes(rows, self.weights)

    def negated(self) -> Changes:
        return Changes(self.rows, -self.weight_array())

    def netted(self) -> Changes:
        """Add up the weights of equal rows, and leave out those that come to 0. Rows stay in order of first coming."""
        if self.weights is None:
            return self
        numbers, firsts = numbered(self.rows.columns, len(self))
        totals = added_up(self.weights, numbers, len(firsts))
        kept = np.flatnonzero(totals)
        return Changes(self.rows.take(pa.array(firsts[kept])), totals[kept])

    def __reduce__(self) -> tuple[Callable[..., Changes], tuple[Any, ...]]:
        return _read, (self.rows.schema.serialize().to_pybytes(), self.rows.serialize().to_pybytes(), self.weights)

    def __repr__(self) -> str:
        return f"Changes({len(self)} rows of {self.rows.num_columns} columns)"


def concatenated(parts: Iterable[Changes], schema: pa.Schema) -> Changes:
    """All changes of `parts`, in order."""
    given = [each for each in parts if len(each)]
    if len(given) == 1:
        return given[0]
    batches = pa.Table.from_batches([each.rows for each in given], schema).combine_chunks().to_batches()
    rows = batches[0] if batches else pa.RecordBatch.from_pylist([], schema)
    if all(each.weights is None for each in given):
        return Changes(rows)
    return Changes(rows, np.concatenate([each.weight_array() for each in given]))


def _read(schema: bytes, rows: bytes, weights: Weights | None) -> Changes:
    return Changes(pa.ipc.read_record_batch(rows, pa.ipc.read_schema(pa.py_buffer(schema))), weights)
