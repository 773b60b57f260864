"""TUMBLE, HOP and CUMULATE as table functions: each row once for every window that it is in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.table.plan.expressions import Column
from headwater.table.plan.nodes import WindowTable
from headwater.table.stream.changes import Changes
from headwater.table.stream.operators import windows_time
from headwater.table.stream.operators.base import ChangesOperator
from headwater.table.stream.operators.windows_time import clock_of, local_ms
from headwater.table.types.arrow import to_arrow


class WindowAssignOperator(ChangesOperator):
    """Adds window_start, window_end and window_time to rows. Stateless. A row without a time is in no window.

    Of `node`, the input is not looked at. `columns` are those of `input`, then those that the node adds.
    """

    def __init__(
        self, input: Sequence[Column], node: WindowTable, columns: Sequence[Column], *, zone: str = "UTC"
    ) -> None:
        super().__init__(columns, zone)
        self._time = [column.id for column in input].index(node.time.id)
        self._kind, self._size, self._step, self._offset = node.kind, node.size_ms, node.step_ms, node.offset_ms
        self._bounds = WindowColumns(node.added, zone)

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        for changes in values:
            self.emit(self.assigned(changes))

    def assigned(self, changes: Changes) -> Changes:
        times = changes.rows.column(self._time)
        if times.null_count:
            changes = changes.filter(times.is_valid())
            times = changes.rows.column(self._time)
        elapsed = local_ms(times, self.zone)
        match self._kind:
            case "TUMBLE":
                places = np.arange(len(elapsed))
                starts = _floor(elapsed, self._size, self._offset)
                ends = starts + self._size
            case "HOP":
                each = -(-self._size // self._step)
                places = np.repeat(np.arange(len(elapsed)), each)
                behind = np.arange(each - 1, -1, -1) * self._step
                starts = (_floor(elapsed, self._step, self._offset)[:, None] - behind).ravel()
                if self._size % self._step:  # then some of the windows are over before the row
                    inside = starts + self._size > elapsed[places]
                    places, starts = places[inside], starts[inside]
                ends = starts + self._size
            case "CUMULATE":
                start = _floor(elapsed, self._size, self._offset)
                first = (elapsed - start) // self._step + 1  # the number of the first of the windows it is in
                each_row = self._size // self._step - first + 1
                places = np.repeat(np.arange(len(elapsed)), each_row)
                nth = np.arange(len(places)) - np.repeat(np.cumsum(each_row) - each_row, each_row)
                starts = start[places]
                ends = starts + (first[places] + nth) * self._step
            case _:
                raise AssertionError(f"windows of {self._kind} are not known row by row")
        taken = changes if self._kind == "TUMBLE" else changes.take(places)
        columns = [*taken.rows.columns, *self._bounds.of(starts, ends)]
        return taken.with_rows(pa.RecordBatch.from_arrays(columns, schema=self.schema))


class WindowColumns:
    """Makes the columns window_start, window_end and window_time. Bounds are milliseconds of local time."""

    def __init__(self, columns: Sequence[Column], zone: str) -> None:
        self._kinds = [to_arrow(column.type) for column in columns]
        self._clock = zone, self._kinds[2].tz is not None

    def of(self, starts: np.ndarray, ends: np.ndarray) -> list[pa.Array]:
        lasts = ends - 1
        if self._clock[1]:
            different, places = np.unique(ends, return_inverse=True)
            instant_ms = clock_of(*self._clock)
            lasts = np.array([instant_ms(end * 1000) - 1 for end in different.tolist()], np.int64)[places]
        bounds = zip((starts, ends, lasts), self._kinds, strict=True)
        return [windows_time.timestamps(milliseconds, kind) for milliseconds, kind in bounds]


def _floor(times: np.ndarray, size: int, offset: int) -> np.ndarray:
    """The start of the window of that size that has each time, before 1970 too."""
    found: np.ndarray = times - (times - offset) % size
    return found


def assign_windows(input: Sequence[Column], node: WindowTable, *, zone: str = "UTC") -> WindowAssignOperator:
    return WindowAssignOperator(input, node, (*input, *node.added), zone=zone)
