"""Joins of two windowed tables: rows of the same window with equal keys, once, when the window has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.state.descriptors import MapStateDescriptor
from headwater.state.many_keys import Maps
from headwater.table.plan.expressions import Column, Rex
from headwater.table.stream.changes import Changes, concatenated
from headwater.table.stream.operators.join_base import LEFT, RIGHT
from headwater.table.stream.operators.join_pairs import Blocks
from headwater.table.stream.operators.join_state import Gathered
from headwater.table.stream.operators.join_time import EVENT, TimedJoin, place_of, times_ms
from headwater.table.stream.operators.row_state import Row
from headwater.table.stream.rows import frozen_rows


class WindowJoinOperator(TimedJoin):
    """Any kind of join of rows that have the same window end. Emits insertions only; keeps open windows only.

    `window_end` are the columns of both sides that hold it; the windows are of one kind, or their start is among the
    keys. With `zoned`, the windows are of a TIMESTAMP_LTZ column: their bounds are local times.
    """

    def __init__(
        self,
        left: Sequence[Column],
        right: Sequence[Column],
        kind: str,
        left_keys: Sequence[Column],
        right_keys: Sequence[Column],
        residual: Rex | None,
        columns: Sequence[Column],
        *,
        window_end: tuple[Column, Column],
        null_safe: Sequence[bool] | None = None,
        time: str = EVENT,
        zoned: bool = False,
        zone: str = "UTC",
    ) -> None:
        super().__init__(left, right, kind, left_keys, right_keys, residual, columns, null_safe=null_safe, zone=zone)
        self.time = time
        self.zoned = zoned
        self.ends = tuple(place_of(end, side) for end, side in zip(window_end, (left, right), strict=True))

    def open(self) -> None:
        super().open()
        names = ("left-window", "right-window")
        states = [self.backend.get_namespaced_state(MapStateDescriptor(name)) for name in names]
        self._windows = [Maps(self.backend, state, namespaced=True) for state in states]

    def finish(self, taken: list[Changes]) -> None:
        for side in (LEFT, RIGHT):
            self._add(side, taken[side])
        due = list(self.timers.pop_due(self.passed))
        if due:
            self._close([(key, end) for _, key, end in due])
        self.backend.current_namespace = None

    def _add(self, side: int, changes: Changes) -> None:
        ends = times_ms(changes.rows.column(self.ends[side]), self.zone if self.zoned else None)
        changes, last = self.in_time(side, changes, ends - 1)
        maps, timers = self._windows[side], self.timers
        found: dict[tuple[Any, int], dict[Row, int]] = {}
        rows, weights = frozen_rows(changes.rows), changes.weight_array().tolist()
        for key, end, row, weight in zip(self.keys[side].of(changes), (last + 1).tolist(), rows, weights, strict=True):
            of_window = found.setdefault((key, end), {})
            of_window[row] = of_window.get(row, 0) + weight
        keys: list[Any] = []
        changed: list[Row] = []
        counts: list[int | None] = []
        for (key, end), of_window in found.items():
            timers.register(end - 1, key, end)
            held = maps.some_of((key, end), of_window)
            for row, weight in of_window.items():
                before = held.get(row, 0)
                if before or weight > 0:
                    keys.append((key, end))
                    changed.append(row)
                    counts.append(count if (count := before + weight) > 0 else None)
        maps.update(keys, changed, counts)

    def _close(self, windows: list[tuple[Any, int]]) -> None:
        """Join the rows of windows that have ended, and forget them."""
        left, right = (
            Gathered.of_new(maps.all_of_each(windows), schema)
            for maps, schema in zip(self._windows, self._schemas, strict=True)
        )
        for maps in self._windows:
            maps.clear(windows)
        matchable = np.array([not self.has_null(key) for key, _ in windows])

        def blocks_of(left: Gathered, right: Gathered) -> Blocks:
            starts, sizes = left.changing
            return np.stack([starts, sizes * matchable, *right.changing], axis=1)

        out: list[Changes] = []
        self.join((left, right), blocks_of, np.zeros((2, 2, len(windows)), np.int64), out)
        self.emit(concatenated(out, self._schema))

    def abort_epoch(self) -> None:
        super().abort_epoch()
        self.backend.current_namespace = None
