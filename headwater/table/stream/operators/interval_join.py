"""Joins of rows whose times are within an interval of each other. State is bounded: the watermark cleans it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.table.functions.frame import Frame
from headwater.table.plan.expressions import Column, Rex
from headwater.table.stream.changes import Changes, concatenated
from headwater.table.stream.operators.join import JoinOperator
from headwater.table.stream.operators.join_base import LEFT, RIGHT
from headwater.table.stream.operators.join_pairs import Places, Residual
from headwater.table.stream.operators.join_state import Gathered
from headwater.table.stream.operators.join_time import EVENT, TimedJoin, per_ms, place_of, times_ms
from headwater.table.stream.operators.row_state import Row
from headwater.table.stream.rows import thawed_rows


class IntervalJoinOperator(JoinOperator, TimedJoin):
    """Rows with equal keys and `right_time + lower_ms <= left_time <= right_time + upper_ms`.

    Pairs leave at once, as do rows of a SEMI join. A row without a match, of an outer or ANTI join, leaves when no
    match can come any more. Rows may be taken back until their time has passed. Late rows are dropped and counted.
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
        left_time: Column,
        right_time: Column,
        lower_ms: int,
        upper_ms: int,
        null_safe: Sequence[bool] | None = None,
        time: str = EVENT,
        zone: str = "UTC",
    ) -> None:
        super().__init__(left, right, kind, left_keys, right_keys, residual, columns, null_safe=null_safe, zone=zone)
        self.by_row = self.needs_pairs = True
        self.time = time
        self.bounds_ms = (lower_ms, upper_ms)
        self.times = (place_of(left_time, left), place_of(right_time, right))
        self.units = (per_ms(left_time), per_ms(right_time))
        self.stay_ms = (max(-lower_ms, 0), max(upper_ms, 0))
        """Of each side, how long after its own time a row can find a match, or be taken back."""

    def open(self) -> None:
        super().open()
        self._residual: Residual = _Within(self._residual, self.times, self.units, self.bounds_ms)

    def finish(self, taken: list[Changes]) -> None:
        kept = [
            self.in_time(side, changes, times_ms(changes.rows.column(place)))[0]
            for side, (changes, place) in enumerate(zip(taken, self.times, strict=True))
        ]
        super().finish(kept)
        self._expire()

    def _lonely(self, side: int, rows: Gathered, matches: np.ndarray, totals: np.ndarray) -> list[Changes]:
        return super()._lonely(side, rows, matches, totals) if self.kind == "SEMI" else []

    def _store(self, side: int, touched: list[Any], rows: Gathered, matches: np.ndarray) -> None:
        super()._store(side, touched, rows, matches)
        new = np.flatnonzero((rows.before == 0) & (rows.after > 0))
        ends = times_ms(rows.batch.column(self.times[side]).take(pa.array(new, pa.int64()))) + self.stay_ms[side]
        for place, end in zip(new.tolist(), ends.tolist(), strict=True):
            self.timers.register(end, touched[rows.keys[place]], side)

    def _expire(self) -> None:
        passed = self.passed
        due = dict.fromkeys((side, key) for _, key, side in self.timers.pop_due(passed))
        alone: tuple[list[tuple[Row, int]], list[tuple[Row, int]]] = ([], [])
        for side, key in due:
            state, place, unit = self._states[side].rows, self.times[side], self.units[side]
            limit = passed - self.stay_ms[side]
            over = [(row, entry) for row, entry in state.all_of(key).items() if row[place] // unit <= limit]
            state.update([key] * len(over), [row for row, _ in over], [None] * len(over))
            alone[side].extend((row, count) for row, (count, matches) in over if not matches)
        if self.kind == "SEMI":
            return
        out = []
        for side in (LEFT, RIGHT):
            if self.kept[side] and alone[side]:
                rows = thawed_rows([row for row, _ in alone[side]], self._schemas[side])
                out.append(self.alone(side, rows, np.array([count for _, count in alone[side]], np.int64)))
        self.emit(concatenated(out, self._schema))


class _Within(Residual):
    """The interval, then the rest of the condition."""

    def __init__(
        self, rest: Residual, places: tuple[int, int], units: tuple[int, int], bounds_ms: tuple[int, int]
    ) -> None:
        self._rest = rest
        self._places = places
        unit = max(units)  # of a millisecond: microseconds, or nanoseconds if one side has them
        self._factors = tuple(unit // each for each in units)
        self._lower, self._upper = (bound * unit for bound in bounds_ms)

    def matching(
        self, left: pa.RecordBatch, lefts: Places, right: pa.RecordBatch, rights: Places, frame: Frame
    ) -> tuple[Places, Places]:
        one, other = (
            np.asarray(rows.column(place).view(pa.int64())) * factor
            for rows, place, factor in zip((left, right), self._places, self._factors, strict=True)
        )
        apart = one[lefts] - other[rights]
        near = np.flatnonzero((self._lower <= apart) & (apart <= self._upper))
        frame = Frame(len(near), frame.zone, frame.now_ms, frame.query_start_ms, frame.watermark_ms)
        return self._rest.matching(left, lefts[near], right, rights[near], frame)
