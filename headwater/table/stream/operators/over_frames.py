"""Which rows the window of each row has: ROWS and RANGE frames over sorted groups."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.table.plan.expressions import Frame, FrameBound, Literal
from headwater.table.stream.operators.sort_order import OrderColumn, Sorted

Bounds = tuple[np.ndarray, np.ndarray]
"""Of each sorted row: where its frame begins, and after its end."""


class Frames:
    """Frames over rows that are sorted by group and order."""

    def __init__(self, found: Sorted, rows: pa.RecordBatch, order: Sequence[OrderColumn]) -> None:
        count = len(found.order)
        self.places = np.arange(count)
        self.starts = found.starts
        self.ends = _next(self.places == found.starts, count)
        self.first_peers = np.maximum.accumulate(np.where(found.peers, 0, self.places)) if count else self.places
        self.next_peers = _next(~found.peers, count)
        self._rows, self._order, self._sorted = rows, order, found

    def bounds(self, frame: Frame | None, ordered: bool) -> Bounds:
        """Without a frame: up to the last peer; without an order too: all rows of the group."""
        if frame is None:
            return self.starts, self.next_peers if ordered else self.ends
        if frame.unit == "ROWS":
            begins, ends = self._of_rows(frame.start), self._of_rows(frame.end) + 1
        else:
            begins, ends = self._of_range(frame.start, False), self._of_range(frame.end, True)
        begins = np.clip(begins, self.starts, self.ends)
        return begins, np.maximum(np.clip(ends, self.starts, self.ends), begins)

    def _of_rows(self, bound: FrameBound) -> np.ndarray:
        match bound.kind:
            case "UNBOUNDED PRECEDING":
                return self.starts
            case "UNBOUNDED FOLLOWING":
                return self.ends - 1
            case "CURRENT ROW":
                return self.places
        assert bound.offset is not None
        found: np.ndarray = self.places + (bound.offset.value if bound.kind == "FOLLOWING" else -bound.offset.value)
        return found

    def _of_range(self, bound: FrameBound, end: bool) -> np.ndarray:
        match bound.kind:
            case "UNBOUNDED PRECEDING":
                return self.starts
            case "UNBOUNDED FOLLOWING":
                return self.ends
            case "CURRENT ROW":
                return self.next_peers if end else self.first_peers
        assert bound.offset is not None
        (order,) = self._order
        column = self._rows.column(order.place)
        distance = range_distance(bound.offset, column.type)
        values, known = _numbers(column.take(pa.array(self._sorted.order)))
        if order.descending:
            values = -values
        wanted = values + distance if bound.kind == "FOLLOWING" else values - distance
        # NULLs are peers of each other, and no distance leads from or to them.
        found = np.where(known, 0, self.next_peers if end else self.first_peers)
        for start in np.unique(self.starts).tolist():
            mine = start + np.flatnonzero(known[start : self.ends[start]])
            if len(mine):
                found[mine] = mine[0] + np.searchsorted(values[mine], wanted[mine], "right" if end else "left")
        return found


def range_distance(offset: Literal, kind: pa.DataType) -> Any:
    """The length of a RANGE bound in the numbers of the ORDER BY column."""
    value = offset.value
    if isinstance(value, datetime.timedelta):
        microseconds = value // datetime.timedelta(microseconds=1)
        if pa.types.is_date32(kind):
            return value.days
        if pa.types.is_time32(kind):
            return microseconds // 1000
        return microseconds * 1000 if kind.unit == "ns" else microseconds
    if pa.types.is_temporal(kind):
        raise SqlError("RANGE with an interval of months is not there yet in streams; use one of days to seconds")
    return value


def _numbers(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The values as numbers that can be subtracted, and which of them are there."""
    known = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_floating(column.type):
        return column.fill_null(0.0).to_numpy(zero_copy_only=False), known
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    # Objects: neither sums of BIGINT nor those of DECIMAL overflow.
    values = np.empty(len(column), object)
    values[:] = [0 if value is None else value for value in column.to_pylist()]
    return values, known


def _next(begins: np.ndarray, count: int) -> np.ndarray:
    """For each place, the next one behind it where something begins, or the end."""
    marked = np.append(np.where(begins, np.arange(count), count)[1:], count)
    return np.minimum.accumulate(marked[::-1])[::-1] if count else marked[:0]
