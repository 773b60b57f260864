"""Temporal joins: each row with the version of another table's row that held at its time (FOR SYSTEM_TIME AS OF)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.state.api import MapState
from headwater.state.descriptors import MapStateDescriptor
from headwater.table.plan.expressions import Column, Rex
from headwater.table.stream.changes import Changes, concatenated
from headwater.table.stream.operators.join_base import LEFT, RIGHT
from headwater.table.stream.operators.join_pairs import NOWHERE, side_by_side, weighted
from headwater.table.stream.operators.join_state import time_to_live
from headwater.table.stream.operators.join_time import EVENT, PROCESSING, TimedJoin, per_ms, place_of, times_ms
from headwater.table.stream.operators.row_state import Row
from headwater.table.stream.rows import frozen_rows, thawed_rows

_LATEST = 0
"""The time of the one version that a join by processing time keeps."""


class TemporalJoinOperator(TimedJoin):
    """INNER or LEFT join of rows with the version of `right_keys` at `left_time`. Gives insertions only.

    Event time: a left row waits until the watermark has passed it. The right side has *all* versions: each row is the
    version from `right_time` on (so it must not be netted by key before), also one that comes late. A row that is taken
    back ends a version: at its own time if that is later; otherwise, unless a newer version comes in the same epoch,
    right behind the watermark. Kept are the version that holds at the watermark, and later ones, of each key.

    Processing time (`left_time` is None): a left row meets the latest version that the epoch knows, and leaves at once.
    """

    kinds = ("INNER", "LEFT")

    def __init__(
        self,
        left: Sequence[Column],
        right: Sequence[Column],
        kind: str,
        left_keys: Sequence[Column],
        right_keys: Sequence[Column],
        left_time: Column | None,
        right_time: Column | None,
        residual: Rex | None,
        columns: Sequence[Column],
        *,
        ttl_ms: int | None = None,
        zone: str = "UTC",
    ) -> None:
        super().__init__(left, right, kind, left_keys, right_keys, residual, columns, zone=zone)
        self.time = EVENT if left_time is not None else PROCESSING
        self.ttl_ms = ttl_ms
        self.times: tuple[int, int] | None = None
        if left_time is not None:
            assert right_time is not None
            self.times = (place_of(left_time, left), place_of(right_time, right))
            self.left_unit = per_ms(left_time)

    def open(self) -> None:
        super().open()
        versions = MapStateDescriptor("versions")
        ttl = time_to_live(self.ttl_ms)
        if ttl is not None:
            versions.enable_time_to_live(ttl)
        # {from when, in ms: the row, or None if there is none from then on}
        self._versions: MapState[int, Row | None] = self.backend.get_state(versions)
        self._waiting: MapState[Row, int] = self.backend.get_state(MapStateDescriptor("waiting"))

    def next_processing_timer(self) -> int | None:
        return None

    def finish(self, taken: list[Changes]) -> None:
        out: list[Changes] = []
        self._take_versions(self.matchable(RIGHT, taken[RIGHT])[0])
        lefts = taken[LEFT]
        if self.times is not None:
            lefts = self.in_time(LEFT, lefts, times_ms(lefts.rows.column(self.times[LEFT])))[0]
        lefts, nulls = self.matchable(LEFT, lefts)
        out += self.unmatchable(LEFT, nulls)
        by_key = self.by_key(LEFT, lefts)
        if self.times is None:
            due = [(key, list(rows.items())) for key, rows in by_key.items()]
        else:
            self._wait(by_key)
            due = self._due()
        out += self._joined(due)
        self.emit(concatenated(out, self._schema))

    # -- Versions

    def _take_versions(self, changes: Changes) -> None:
        keys, rows = self.keys[RIGHT].of(changes), frozen_rows(changes.rows)
        times = np.zeros(len(changes), np.int64)
        if self.times is not None:
            times = times_ms(changes.rows.column(self.times[RIGHT]))
        weights = changes.weight_array()
        newest: dict[Any, int] = {}  # of the versions that come in this epoch
        for place in np.flatnonzero(weights > 0).tolist():
            key, time = keys[place], int(times[place])
            self.backend.current_key = key
            self._versions.put(time, rows[place])
            newest[key] = max(time, newest.get(key, time))
        for place in np.flatnonzero(weights < 0).tolist():
            self._end_version(keys[place], int(times[place]), rows[place], newest)
        if self.times is not None:
            for key in dict.fromkeys(keys):
                self._forget_versions(key)

    def _end_version(self, key: Any, time: int, row: Row, newest: dict[Any, int]) -> None:
        self.backend.current_key = key
        held = self._versions.get(time)
        if held is None and self.times is not None:
            self._versions.put(time, None)
        elif held != row or newest.get(key, time - 1) >= time:
            return  # an update: the new version ends it
        elif self.times is None or time > self.watermark_before:
            self._versions.remove(time)
        else:
            self._versions.put(self.watermark_before + 1, None)

    def _forget_versions(self, key: Any) -> None:
        """Forget what no row in time can ask for any more."""
        self.backend.current_key = key
        old = sorted(time for time in self._versions if time <= self.watermark_before)
        for time in old[:-1]:
            self._versions.remove(time)
        if old and self._versions.get(old[-1]) is None:
            self._versions.remove(old[-1])

    # -- Rows

    def _wait(self, by_key: dict[Any, dict[Row, int]]) -> None:
        assert self.times is not None
        place, unit = self.times[LEFT], self.left_unit
        for key, rows in by_key.items():
            self.backend.current_key = key
            for row, weight in rows.items():
                count = (self._waiting.get(row) or 0) + weight
                if count > 0:
                    self._waiting.put(row, count)
                    self.timers.register(row[place] // unit, key)
                elif count != weight:
                    self._waiting.remove(row)

    def _due(self) -> list[tuple[Any, list[tuple[Row, int]]]]:
        """Take the rows that the watermark has passed."""
        assert self.times is not None
        place, unit, passed = self.times[LEFT], self.left_unit, self.passed
        due = []
        for key in dict.fromkeys(key for _, key, _ in self.timers.pop_due(passed)):
            self.backend.current_key = key
            rows = [(row, count) for row, count in self._waiting.items() if row[place] // unit <= passed]
            for row, _ in rows:
                self._waiting.remove(row)
            due.append((key, rows))
        return due

    def _joined(self, due: list[tuple[Any, list[tuple[Row, int]]]]) -> list[Changes]:
        """Join rows by key with the versions at their times."""
        lefts: list[Row] = []
        rights: list[Row] = []
        weights: list[int] = []
        found: list[int] = []  # for each left row, the place of its version
        for key, rows in due:
            self.backend.current_key = key
            versions = sorted(self._versions.items())
            starts, first = [time for time, _ in versions], len(rights)
            rights += [() if row is None else row for _, row in versions]
            for row, weight in rows:
                number = bisect_right(starts, self._time(row)) - 1
                found.append(first + number if number >= 0 and versions[number][1] is not None else NOWHERE)
                lefts.append(row)
                weights.append(weight)
        if not lefts:
            return []
        missing = (None,) * len(self.inputs[RIGHT])
        left = thawed_rows(lefts, self._schemas[LEFT])
        right = thawed_rows([row or missing for row in rights], self._schemas[RIGHT])
        version = np.array(found, np.int64)
        candidates = np.flatnonzero(version != NOWHERE)
        kept, at = self._residual.matching(left, candidates, right, version[candidates], self.frame(len(candidates)))
        counts = np.array(weights, np.int64)
        if self.kind == "LEFT":
            at_of = np.full(len(lefts), NOWHERE)
            at_of[kept] = at
            kept, at = np.arange(len(lefts)), at_of
        return [weighted(side_by_side(left, kept, right, at, self._schema), counts[kept])]

    def _time(self, row: Row) -> int:
        return _LATEST if self.times is None else int(row[self.times[LEFT]] // self.left_unit)
