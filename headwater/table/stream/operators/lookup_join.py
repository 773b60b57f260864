"""Lookup joins: each row with the rows that another system has for its key now."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.table.plan.expressions import Column, Rex
from headwater.table.plan.nodes import LookupRetry
from headwater.table.stream.changes import Changes, concatenated, schema_of
from headwater.table.stream.evaluate import compiled
from headwater.table.stream.operators.base import ChangesOperator
from headwater.table.stream.operators.join_pairs import NOWHERE, Block, Residual, pairs_of, side_by_side, weighted
from headwater.table.stream.operators.join_time import place_of

Key = tuple[Any, ...]
Rows = list[tuple[Any, ...]]


class Lookup(Protocol):
    """Another system that is asked by key. Made with the plan, used in a worker: it must be picklable before `open`."""

    def open(self) -> None: ...

    def lookup(self, keys: list[Key]) -> dict[Key, Rows]:
        """The rows of each of these keys, which are distinct and without NULL. A key without rows may be left out.

        Keys and rows have Python values (datetime, Decimal, ...).
        """
        ...


@dataclass(frozen=True)
class LookupCache:
    """What is remembered of look-ups: Flink's options `lookup.partial-cache.*`. Age is by processing time."""

    max_rows: int
    """A key without rows counts as one."""
    expire_after_write_ms: int | None = None
    expire_after_access_ms: int | None = None
    cache_missing_key: bool = True


class LookupJoinOperator(ChangesOperator):
    """INNER or LEFT join of rows with what `lookup` has for `keys` (columns of the input), asked in batches.

    `columns` are those of the input, then those of the looked-up rows. Stateless: what has been joined does not change
    when the other system does. So a row that is taken back must find what it found when it came; insertions are safe.
    """

    def __init__(
        self,
        input: Sequence[Column],
        lookup: Lookup,
        kind: str,
        keys: Sequence[Column],
        residual: Rex | None,
        columns: Sequence[Column],
        *,
        cache: LookupCache | None = None,
        retry: LookupRetry | None = None,
        zone: str = "UTC",
    ) -> None:
        super().__init__(columns, zone)
        assert kind in ("INNER", "LEFT"), f"a lookup join has no kind {kind}"
        self.inputs = (tuple(input),)
        self.lookup = lookup
        self.kind = kind
        self.keys = tuple(place_of(key, input) for key in keys)
        self.residual = residual
        self.cache = cache
        self.retry = retry
        self.looked_up = self.columns[len(input) :]

    def open(self) -> None:
        both = (*self.inputs[0], *self.looked_up)
        condition = None if self.residual is None else compiled(self.residual, both)
        self._residual = Residual(condition, schema_of(both))
        self._right, self._schema = schema_of(self.looked_up), self.schema
        self._remembered = None if self.cache is None else _Remembered(self.cache)
        self.lookup.open()

    def close(self) -> None:
        super().close()
        close = getattr(self.lookup, "close", None)
        if close is not None:
            close()

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        for changes in values:
            if len(changes):
                self.emit(self._joined(changes))

    def _joined(self, changes: Changes) -> Changes:
        keys = list(zip(*(changes.rows.column(place).to_pylist() for place in self.keys), strict=True))
        distinct = [key for key in dict.fromkeys(keys) if None not in key]
        found = self._rows_of(distinct)
        starts: dict[Key, tuple[int, int]] = {}
        rows: Rows = []
        for key in distinct:
            of_key = found.get(key, [])
            starts[key] = (len(rows), len(of_key))
            rows += of_key
        right = self._columns(rows)
        blocks: list[Block] = [(place, 1, *starts.get(key, (0, 0))) for place, key in enumerate(keys)]
        weights, parts = changes.weight_array(), []
        alone = np.ones(len(changes), bool)
        for pair in pairs_of(blocks):
            lefts, rights = self._residual.matching(changes.rows, pair[0], right, pair[1], self.frame(len(pair[0])))
            alone[lefts] = False
            parts.append(weighted(side_by_side(changes.rows, lefts, right, rights, self._schema), weights[lefts]))
        if self.kind == "LEFT" and alone.any():
            lefts = np.flatnonzero(alone)
            nowhere = np.full(len(lefts), NOWHERE)
            parts.append(weighted(side_by_side(changes.rows, lefts, right, nowhere, self._schema), weights[lefts]))
        return concatenated(parts, self._schema)

    def _rows_of(self, keys: list[Key]) -> dict[Key, Rows]:
        if self._remembered is None:
            return self._asked(keys) if keys else {}
        now = self.context.processing_time_ms
        found = {key: rows for key in keys if (rows := self._remembered.get(key, now)) is not None}
        unknown = [key for key in keys if key not in found]
        if unknown:
            answers = self._asked(unknown)
            for key in unknown:
                found[key] = answers.get(key, [])
                self._remembered.put(key, found[key], now)
        return found

    def _asked(self, keys: list[Key]) -> dict[Key, Rows]:
        """The answers. The batch waits while keys without rows are asked for again."""
        found = self.lookup.lookup(keys)
        for _ in range(self.retry.attempts if self.retry is not None else 0):
            missing = [key for key in keys if not found.get(key)]
            if not missing:
                break
            assert self.retry is not None
            time.sleep(self.retry.delay_ms / 1000)
            found = {**found, **self.lookup.lookup(missing)}
        return found

    def _columns(self, rows: Rows) -> pa.RecordBatch:
        width = len(self.looked_up)
        for row in rows:
            if len(row) != width:
                raise SqlError(f"the look-up gave a row of {len(row)} columns: {row!r}; the table has {width}")
        columns = list(zip(*rows, strict=True)) if rows else [()] * width
        arrays = [pa.array(values, field.type) for values, field in zip(columns, self._right, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._right)


class _Remembered:
    """The latest used answers."""

    def __init__(self, options: LookupCache) -> None:
        self._options = options
        self._answers: OrderedDict[Key, tuple[Rows, int, int]] = OrderedDict()  # {key: (rows, written, used)}
        self._size = 0

    def get(self, key: Key, now: int) -> Rows | None:
        answer = self._answers.get(key)
        if answer is None:
            return None
        rows, written, used = answer
        options = self._options
        if _expired(written, options.expire_after_write_ms, now) or _expired(used, options.expire_after_access_ms, now):
            self._remove(key)
            return None
        self._answers[key] = (rows, written, now)
        self._answers.move_to_end(key)
        return rows

    def put(self, key: Key, rows: Rows, now: int) -> None:
        if not rows and not self._options.cache_missing_key:
            return
        self._answers[key] = (rows, now, now)
        self._size += max(len(rows), 1)
        while self._size > self._options.max_rows:
            self._remove(next(iter(self._answers)))

    def _remove(self, key: Key) -> None:
        self._size -= max(len(self._answers.pop(key)[0]), 1)


def _expired(since: int, limit_ms: int | None, now: int) -> bool:
    return limit_ms is not None and now - since >= limit_ms
