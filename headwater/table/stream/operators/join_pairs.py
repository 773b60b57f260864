"""Pairs of rows as two arrays of indexes, made without a loop over pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from headwater.table.functions.frame import Frame
from headwater.table.stream.changes import Changes, Weights
from headwater.table.stream.evaluate import Compiled, evaluated

Places = np.ndarray[tuple[int], np.dtype[np.int64]]
Block = tuple[int, int, int, int]
"""(first left row, number of left rows, first right row, number of right rows): each with each."""

Blocks = Sequence[Block] | np.ndarray
"""Many blocks; as an array of four columns, too."""

NOWHERE = -1
"""In place of an index: no row, NULL in all columns."""

PAIRS_AT_ONCE = 1 << 17
"""So many pairs have their columns in memory at once."""


def pairs_of(blocks: Blocks, at_once: int = PAIRS_AT_ONCE) -> Iterator[tuple[Places, Places]]:
    """The indexes of all pairs of all blocks, in parts."""
    left_start, left_count, right_start, right_count = np.asarray(blocks, np.int64).reshape(-1, 4).T
    sizes = left_count * right_count
    filled = np.flatnonzero(sizes)
    left_start, right_start, right_count, sizes = (
        each[filled] for each in (left_start, right_start, right_count, sizes)
    )
    ends = np.cumsum(sizes)
    total = int(sizes.sum())
    for begin in range(0, total, at_once):
        numbers = np.arange(begin, min(begin + at_once, total))
        if total <= at_once:
            block = np.repeat(np.arange(len(sizes)), sizes)
        else:
            block = np.searchsorted(ends, numbers, side="right")
        within = numbers - (ends - sizes)[block]
        yield left_start[block] + within // right_count[block], right_start[block] + within % right_count[block]


def side_by_side(
    left: pa.RecordBatch, left_places: Places, right: pa.RecordBatch, right_places: Places, schema: pa.Schema
) -> pa.RecordBatch:
    """The columns of both sides for each pair. `NOWHERE` gives NULLs."""
    columns = [*_taken(left, left_places), *_taken(right, right_places)]
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(left_places), pa.struct([])))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _taken(rows: pa.RecordBatch, places: Places) -> list[pa.Array]:
    if not rows.num_rows:
        return [pa.nulls(len(places), column.type) for column in rows.columns]
    missing = places == NOWHERE
    indexes = pa.array(places, pa.int64(), mask=missing if missing.any() else None)
    return list(rows.take(indexes).columns) if rows.num_columns else []


def weighted(rows: pa.RecordBatch, weights: Weights) -> Changes:
    """Changes with these weights; without any if all are +1."""
    return Changes(rows, None if (weights == 1).all() else weights)


class Residual:
    """A condition on pairs beside the equality of their keys. NULL is no match."""

    def __init__(self, condition: Compiled | None, schema: pa.Schema) -> None:
        self._condition = condition
        self._schema = schema

    def matching(
        self, left: pa.RecordBatch, lefts: Places, right: pa.RecordBatch, rights: Places, frame: Frame
    ) -> tuple[Places, Places]:
        """The pairs that match. `frame` has as many rows as there are pairs."""
        if self._condition is None:
            return lefts, rights
        rows = side_by_side(left, lefts, right, rights, self._schema)
        mask = evaluated(self._condition, rows, frame).fill_null(False).to_numpy(zero_copy_only=False)
        return lefts[mask], rights[mask]
