"""ORDER BY over columns: codes that sort as the values do, and ranks within groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.table.plan.expressions import Column, ColumnRef, SortKey
from headwater.table.stream.rows import frozen_column

Codes = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True)
class OrderColumn:
    place: int
    descending: bool
    nulls_first: bool


def order_columns(keys: Sequence[SortKey], columns: Sequence[Column]) -> tuple[OrderColumn, ...]:
    """The keys by place. Their expressions must be columns; an order by a constant is none."""
    places = {column.id: place for place, column in enumerate(columns)}
    return tuple(
        OrderColumn(places[key.expression.column.id], key.descending, key.nulls_first)
        for key in keys
        if isinstance(key.expression, ColumnRef)
    )


def order_codes(rows: pa.RecordBatch, order: Sequence[OrderColumn]) -> list[Codes]:
    """For each key numbers that sort ascending as it says. Equal values have equal ones. NaN is the greatest value."""
    return [_codes(rows.column(each.place), each) for each in order]


def _codes(column: pa.Array, order: OrderColumn) -> Codes:
    # A sort of the different values gives their numbers; those of the rows follow.
    encoded = column.dictionary_encode() if not pa.types.is_nested(column.type) else None
    if encoded is None:
        values: list[Any] = frozen_column(column)
        different = sorted({value for value in values if value is not None})
        number = {value: code for code, value in enumerate(different)}
        codes = np.array([number.get(value, 0) for value in values], np.int64)
        count = len(different)
    else:
        dictionary, count = encoded.dictionary, len(encoded.dictionary)
        number_of = np.zeros(count, np.int64)
        # Arrow sorts NaN to the end, as the greatest.
        number_of[np.asarray(pc.sort_indices(dictionary))] = np.arange(count)
        if pa.types.is_floating(dictionary.type) and count:
            # The two zeros are equal.
            zeros = np.flatnonzero(np.asarray(dictionary) == 0)
            number_of[zeros] = number_of[zeros].min() if len(zeros) else 0
        indices = encoded.indices.fill_null(0).to_numpy()
        codes = number_of[indices] if count else np.zeros(len(column), np.int64)
    if order.descending:
        codes = count - 1 - codes
    if column.null_count:
        missing = column.is_null().to_numpy(zero_copy_only=False)
        codes[missing] = -1 if order.nulls_first else count
    return codes


@dataclass(frozen=True)
class Sorted:
    """Rows by group, sorted within each. `order` has their places before; `starts` where the group of each begins."""

    order: Codes
    numbers: Codes
    starts: Codes
    peers: np.ndarray
    """Whether the row is equal, in order, to the one before it in its group."""

    def row_numbers(self) -> Codes:
        found: Codes = np.arange(len(self.order)) - self.starts + 1
        return found

    def ranks(self) -> Codes:
        """One more than the number of rows before the first peer."""
        firsts = np.where(self.peers, 0, np.arange(len(self.order)))
        found: Codes = np.maximum.accumulate(firsts) - self.starts + 1
        return found

    def dense_ranks(self) -> Codes:
        different = np.cumsum(~self.peers)
        found: Codes = different - different[self.starts] + 1
        return found

    def of_kind(self, kind: str) -> Codes:
        match kind:
            case "ROW_NUMBER":
                return self.row_numbers()
            case "RANK":
                return self.ranks()
            case "DENSE_RANK":
                return self.dense_ranks()
        raise ValueError(f"no rank is called {kind}")


def sorted_groups(numbers: np.ndarray, codes: Sequence[Codes], latest_first: bool = False) -> Sorted:
    """Sort rows by group and then by codes; of equal ones the first (or latest) that came is first."""
    came = np.arange(len(numbers))
    order = np.lexsort([-came if latest_first else came, *reversed(codes), numbers])
    by_group = numbers[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = by_group[1:] != by_group[:-1]
    starts = np.maximum.accumulate(np.where(new, came, 0)) if len(order) else came
    peers = ~new
    for each in codes:
        ordered = each[order]
        peers[1:] &= ordered[1:] == ordered[:-1]
    return Sorted(order, by_group, starts, peers)
