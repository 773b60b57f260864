"""Which rows are equal, found without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.table.stream.rows import frozen_column

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]

_WORTH_A_VECTOR = 64
"""From this many rows on, numbering them by column is faster than one by one."""


def numbered(columns: Sequence[pa.Array], rows: int) -> tuple[Numbers, Numbers]:
    """Number the different rows from 0 in order of first coming: the number of each row, and the first row of each."""
    if rows < _WORTH_A_VECTOR:
        known: dict[Any, int] = {}
        given = zip(*map(frozen_column, columns), strict=True) if columns else [()] * rows
        places = [known.setdefault(row, place) for place, row in enumerate(given)]
        firsts = np.fromiter(known.values(), np.int64, len(known))
        return np.searchsorted(firsts, np.array(places, np.int64)), firsts
    numbers, count = np.zeros(rows, np.int64), 1 if rows else 0
    for place, column in enumerate(columns):
        codes, values = _encoded(column)
        if place:
            # Two numbers below `rows` make one below rows², which an int64 holds.
            codes, values = _encoded(pa.array(numbers * max(values, 1) + codes))
        numbers, count = codes, values
    firsts = np.zeros(count, np.int64)
    firsts[numbers[::-1]] = np.arange(rows - 1, -1, -1)  # the last assignment wins: the first row
    return numbers, firsts


def _encoded(column: pa.Array) -> tuple[Numbers, int]:
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
        # Arrow cannot number these, or tells 0.0 from -0.0, which are one key of state.
        known: dict[Any, int] = {}
        codes = [known.setdefault(value, len(known)) for value in frozen_column(column)]
        return np.array(codes, np.int64), len(known)
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def added_up(values: np.ndarray, numbers: Numbers, count: int) -> Numbers:
    """The sum of int64 values by number."""
    found = np.zeros(count, np.int64)
    np.add.at(found, numbers, values)
    return found
