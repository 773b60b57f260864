"""What joins by equal keys have in common: sides, keys, the condition, pairs, rows that stand alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.table.plan.expressions import Column, Rex
from headwater.table.stream.changes import Changes, Weights, schema_of
from headwater.table.stream.evaluate import compiled
from headwater.table.stream.keys import KeyColumns
from headwater.table.stream.operators.base import EpochOperator
from headwater.table.stream.operators.join_pairs import (
    NOWHERE,
    Blocks,
    Places,
    Residual,
    pairs_of,
    side_by_side,
    weighted,
)
from headwater.table.stream.operators.join_state import Gathered
from headwater.table.stream.operators.row_state import Row
from headwater.table.stream.rows import frozen_rows

LEFT, RIGHT = 0, 1
PAIRED = ("INNER", "LEFT", "RIGHT", "FULL")
KINDS = (*PAIRED, "SEMI", "ANTI")


class KeyedJoin(EpochOperator):
    """A join of two tables by equal keys.

    `left_keys` and `right_keys` are columns of equal types: also those by which the edges are keyed; none: every row
    meets every row. NULL is equal to nothing, but to NULL where `null_safe` says so. `residual` may use the columns of
    both sides. Output columns are those of the left side, then, but for SEMI and ANTI, those of the right side.
    """

    kinds: tuple[str, ...] = KINDS
    by_row = True
    """Whether matches are counted for each row. If not, all rows of a key have the same number of them."""

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
        zone: str = "UTC",
    ) -> None:
        super().__init__([left, right], columns, zone)
        assert kind in self.kinds, f"{type(self).__name__} has no kind {kind}"
        self.kind = kind
        self.residual = residual
        self.keys = tuple(_places(side, keys) for side, keys in ((left, left_keys), (right, right_keys)))
        safe = tuple(null_safe) if null_safe is not None else (False,) * len(left_keys)
        self.strict = tuple(
            tuple(p for p, is_safe in zip(each.places, safe, strict=True) if not is_safe) for each in self.keys
        )
        """Of each side, the key columns in which NULL is equal to nothing."""
        self.safe = safe
        self.kept = (kind in ("LEFT", "FULL", "SEMI", "ANTI"), kind in ("RIGHT", "FULL"))
        """Of each side, whether its rows matter by themselves: with no match, or (SEMI) with any."""

    def open(self) -> None:
        super().open()
        both = (*self.inputs[LEFT], *self.inputs[RIGHT])
        condition = None if self.residual is None else compiled(self.residual, both)
        self._residual = Residual(condition, schema_of(both))
        self._schemas = [schema_of(each) for each in self.inputs]
        self._schema = self.schema

    def matchable(self, side: int, changes: Changes) -> tuple[Changes, Changes]:
        """Part the changes of a side: those whose key can be equal to another, and those with a NULL in it."""
        mask: pa.Array | None = None
        for place in self.strict[side]:
            column = changes.rows.column(place)
            if column.null_count:
                valid = column.is_valid()
                mask = valid if mask is None else pc.and_(mask, valid)
        if mask is None:
            return changes, changes.take(np.zeros(0, np.int64))
        return changes.filter(mask), changes.filter(pc.invert(mask))

    def has_null(self, key: Any) -> bool:
        """Whether a key has a NULL that is equal to nothing."""
        values = (key,) if len(self.safe) == 1 else key
        return any(value is None and not safe for value, safe in zip(values, self.safe, strict=True))

    def by_key(self, side: int, changes: Changes) -> dict[Any, dict[Row, int]]:
        """The changes of one side by key, those of equal rows added up: `{key: {row: weight}}`."""
        found: dict[Any, dict[Row, int]] = {}
        rows, weights = frozen_rows(changes.rows), changes.weight_array().tolist()
        for key, row, weight in zip(self.keys[side].of(changes), rows, weights, strict=True):
            of_key = found.setdefault(key, {})
            total = of_key.get(row, 0) + weight
            if total:
                of_key[row] = total
            else:
                del of_key[row]
        return found

    def alone(self, side: int, rows: pa.RecordBatch, weights: Weights) -> Changes:
        """Rows of one side without any of the other."""
        count = rows.num_rows
        if self.kind in ("SEMI", "ANTI"):
            return weighted(pa.RecordBatch.from_arrays(rows.columns, schema=self._schema), weights)
        other = pa.RecordBatch.from_pylist([], self._schemas[1 - side])
        here, nowhere = np.arange(count), np.full(count, NOWHERE)
        if side == LEFT:
            return weighted(side_by_side(rows, here, other, nowhere, self._schema), weights)
        return weighted(side_by_side(other, nowhere, rows, here, self._schema), weights)

    def unmatchable(self, side: int, changes: Changes) -> list[Changes]:
        """What rows with a NULL key give."""
        if not len(changes) or not self.kept[side] or self.kind == "SEMI":
            return []
        netted = changes.netted()
        return [self.alone(side, netted.rows, netted.weight_array())]

    def join(
        self,
        sides: tuple[Gathered, Gathered],
        blocks_of: Callable[[Gathered, Gathered], Blocks] | None,
        totals: np.ndarray,
        out: list[Changes],
    ) -> list[np.ndarray]:
        """Join what was gathered: pair the rows that `blocks_of` says, add what comes and goes to `out`.

        `totals[side]` has the number of rows of each key before and after, if matches are not counted by row. Return
        the number of matches of each row of each side after the epoch.
        """
        matches = [each.matches.copy() for each in sides]
        for side in (LEFT, RIGHT):
            matches[side][sides[side].changes] = 0  # all their pairs are looked at
        for lefts, rights in pairs_of(blocks_of(*sides)) if blocks_of is not None else ():
            out += self._paired(sides, lefts, rights, matches)
        for side in (LEFT, RIGHT):
            out += self._lonely(side, sides[side], matches[side], totals[1 - side])
        return matches

    def _paired(
        self, sides: tuple[Gathered, Gathered], lefts: Places, rights: Places, matches: list[np.ndarray]
    ) -> list[Changes]:
        """What pairs give that may match. With `by_row`, count the matches of each row, too."""
        left, right = sides
        frame = self.frame(len(lefts))
        lefts, rights = self._residual.matching(left.batch, lefts, right.batch, rights, frame)
        if self.by_row:
            for side, mine, others in ((LEFT, lefts, rights), (RIGHT, rights, lefts)):
                if self.kept[side]:
                    other = sides[1 - side]
                    come = np.where(
                        sides[side].changes[mine], other.after[others], (other.after - other.before)[others]
                    )
                    np.add.at(matches[side], mine, come)
        if self.kind not in PAIRED:
            return []
        weights = left.after[lefts] * right.after[rights] - left.before[lefts] * right.before[rights]
        kept = np.flatnonzero(weights)
        rows = side_by_side(left.batch, lefts[kept], right.batch, rights[kept], self._schema)
        return [weighted(rows, weights[kept])]

    def _lonely(self, side: int, rows: Gathered, matches: np.ndarray, totals: np.ndarray) -> list[Changes]:
        """What the rows of a side give by themselves, as they have matches or not."""
        if not self.kept[side] or not len(rows.rows):
            return []
        before, after = (rows.matches, matches) if self.by_row else (totals[0][rows.keys], totals[1][rows.keys])
        if self.kind == "SEMI":
            weights = rows.after * (after > 0) - rows.before * (before > 0)
        else:
            weights = rows.after * (after == 0) - rows.before * (before == 0)
        kept = np.flatnonzero(weights)
        return [self.alone(side, rows.batch.take(pa.array(kept, pa.int64())), weights[kept])] if len(kept) else []


def _places(columns: Sequence[Column], keys: Sequence[Column]) -> KeyColumns:
    places = {column.id: place for place, column in enumerate(columns)}
    return KeyColumns([places[key.id] for key in keys])
