"""Joins of two changing tables, by deltas: only pairs with a row that changed are looked at.

With n(l) and n'(l) as the number of rows l before and after the epoch, a pair that matches changes by
n'(l) n'(r) - n(l) n(r). Of an outer side, a row without a match stands alone: its number of matches is kept with it,
or, if equal keys are all that matters, is the number of rows that the other side has for the key.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from headwater.table.plan.expressions import Column, Rex
from headwater.table.stream.changes import Changes, concatenated
from headwater.table.stream.operators.join_base import LEFT, PAIRED, RIGHT, KeyedJoin
from headwater.table.stream.operators.join_pairs import Blocks
from headwater.table.stream.operators.join_state import ChangedRows, Gathered, JoinState


class JoinOperator(KeyedJoin):
    """INNER, LEFT, RIGHT, FULL, SEMI or ANTI join of two changing tables. Both sides are kept, for `ttl_ms` each."""

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
        null_safe: Sequence[bool] | None = None,
        ttl_ms: tuple[int | None, int | None] = (None, None),
        zone: str = "UTC",
    ) -> None:
        super().__init__(left, right, kind, left_keys, right_keys, residual, columns, null_safe=null_safe, zone=zone)
        self.ttl_ms = ttl_ms
        # Rows expire one by one: then those of a key do not have the same matches.
        self.by_row = residual is not None or any(ttl is not None for ttl in ttl_ms)
        self.needs_pairs = kind in PAIRED or self.by_row
        """Whether pairs are needed at all: SEMI and ANTI by equal keys only count the right side."""

    def open(self) -> None:
        super().open()
        self._states = [
            JoinState(self.backend, name, ttl) for name, ttl in zip(("left", "right"), self.ttl_ms, strict=True)
        ]

    def finish(self, taken: list[Changes]) -> None:
        out: list[Changes] = []
        changed: list[ChangedRows] = []
        for side in (LEFT, RIGHT):
            matchable, nulls = self.matchable(side, taken[side])
            keys, weights = self.keys[side].of(matchable), matchable.weight_array().tolist()
            changed.append(ChangedRows(matchable.rows, keys, weights))
            out += self.unmatchable(side, nulls)
        touched = list(dict.fromkeys([*changed[LEFT].of_keys, *changed[RIGHT].of_keys]))
        if touched:
            self.backend.prefetch(touched)
            self._join(touched, changed, out)
        found = concatenated(out, self._schema)
        # Pairs are distinct. Only if a key may be NULL can a pair look like a row that stands alone.
        self.emit(found.netted() if any(self.kept) and not self.strict[LEFT] else found)

    def _join(self, touched: list[Any], changed: list[ChangedRows], out: list[Changes]) -> None:
        totals = np.zeros((2, 2, len(touched)), np.int64)  # [side][before, after][key]
        if not self.by_row:
            for side in (LEFT, RIGHT):
                if self.kept[1 - side]:
                    totals[side] = self._states[side].count(touched, changed[side])
        if self.needs_pairs:
            left = self._gathered(LEFT, touched, changed, changed[RIGHT].of_keys)
            right = self._gathered(RIGHT, touched, changed, changed[LEFT].of_keys)
        else:
            begin_or_end = np.flatnonzero((totals[RIGHT, 0] > 0) != (totals[RIGHT, 1] > 0)).tolist()
            left = self._gathered(LEFT, touched, changed, [touched[number] for number in begin_or_end])
            right = Gathered.of_new([], self._schemas[RIGHT])
        sides = left, right
        matches = self.join(sides, blocks_of if self.needs_pairs else None, totals, out)
        for side in (LEFT, RIGHT):
            self._store(side, touched, sides[side], matches[side])

    def _gathered(
        self, side: int, touched: list[Any], changed: list[ChangedRows], everything: Collection[Any]
    ) -> Gathered:
        return Gathered.of_keys(self._states[side], touched, changed[side], everything, self._schemas[side])

    def _store(self, side: int, touched: list[Any], rows: Gathered, matches: np.ndarray) -> None:
        if side == RIGHT and not self.needs_pairs:
            return
        written = rows.before != rows.after
        if self.by_row and self.kept[side]:
            written |= rows.matches != matches
        places = np.flatnonzero(written)
        keys, count = [touched[number] for number in rows.keys[places].tolist()], rows.after[places]
        known: dict[tuple[int, int], tuple[int, int]] = {}  # nearly all are equal
        pairs = zip(count.tolist(), matches[places].tolist(), strict=True)
        entries: list[Any] = [known.setdefault(pair, pair) for pair in pairs]
        for gone in np.flatnonzero(count == 0).tolist():
            entries[gone] = None
        self._states[side].rows.update(keys, [rows.rows[place] for place in places.tolist()], entries)


def blocks_of(left: Gathered, right: Gathered) -> Blocks:
    """Of each key: rows that change with all of the other side, whether they change or not."""
    parts = [(left.changing, right.changing), (left.changing, right.staying), (left.staying, right.changing)]
    return np.concatenate([np.concatenate(part).T for part in parts])
