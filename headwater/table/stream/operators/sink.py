"""The end of a query: changes become rows with kinds, in an order that a reader of a changelog can apply."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.common.types import RowKind
from headwater.state.ttl.config import StateTtlConfig
from headwater.table.plan.expressions import Column
from headwater.table.stream.changes import Changes, schema_of
from headwater.table.stream.keys import KeyColumns
from headwater.table.stream.numbering import numbered
from headwater.table.stream.operators.aggregate_differences import differs
from headwater.table.stream.operators.base import ChangesOperator, EpochOperator
from headwater.table.stream.operators.row_state import RowState, by_key
from headwater.table.stream.rows import frozen_rows, thawed_rows

_UPDATE = np.array([RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER], object)
_ALONE = np.array([RowKind.DELETE, RowKind.INSERT], object)
"""The kinds of what goes and what comes."""


class Encoder(ABC):
    """Turns rows with their kinds into what a sink writes. Picklable."""

    def open(self) -> None:
        """Prepare; called once in each process that encodes."""

    @abstractmethod
    def encode(self, rows: pa.RecordBatch, kinds: Sequence[RowKind]) -> list[Any]:
        """The records for the sink, in order."""


class AppendSinkOperator(ChangesOperator):
    """Hands inserted rows to a sink as they come."""

    def __init__(self, columns: Sequence[Column], encoder: Encoder) -> None:
        super().__init__(columns)
        self.encoder = encoder

    def open(self) -> None:
        self.encoder.open()

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        for changes in values:
            rows = changes.rows
            if changes.weights is not None:
                if len(changes) and changes.weights.min() < 0:
                    raise SqlError("a row was taken back in a query that the planner took for append-only")
                rows = rows.take(pa.array(np.repeat(np.arange(len(changes)), changes.weights), pa.int64()))
            self.output.emit(self.encoder.encode(rows, [RowKind.INSERT] * rows.num_rows), None)


class ChangelogSinkOperator(EpochOperator):
    """Hands the epoch's net changes to a sink.

    `key`: places of the columns that name a row; a row that goes and one that comes with the same key are an update.
    `upsert`: the sink replaces rows by key, so it gets no UPDATE_BEFORE, and two rows of one key are an error.
    `last_wins`: of several inserted rows of one key, the sink gets the last (a query that only inserts).
    """

    def __init__(
        self,
        columns: Sequence[Column],
        encoder: Encoder,
        key: Sequence[int] | None,
        upsert: bool = False,
        last_wins: bool = False,
        table: str = "",
    ) -> None:
        super().__init__([columns], columns)
        self.encoder = encoder
        self.key = None if key is None else KeyColumns(key)
        self.upsert = upsert
        self.last_wins = last_wins
        self.table = table

    def open(self) -> None:
        super().open()
        self.encoder.open()

    def finish(self, taken: list[Changes]) -> None:
        changes = taken[0] if self.key is not None else taken[0].netted()
        if not len(changes):
            return
        found = self._at_once(changes)
        if found is None:
            changes = changes.netted()
        places, kinds = self._one_by_one(changes) if found is None else found
        if not kinds:
            return
        self.output.emit(self.encoder.encode(changes.rows.take(pa.array(places, pa.int64())), kinds), None)

    def _at_once(self, changes: Changes) -> tuple[Any, list[RowKind]] | None:
        """Where the sink's rows are in `changes`, and their kinds; None if a key has several rows that go or come.

        Without a key, changes must be netted.
        """
        weights = changes.weight_array()
        if np.abs(weights).max() > 1:
            return None
        if self.key is None:
            numbers = np.arange(len(changes))
            count = len(changes)
        else:
            numbers, firsts = numbered([changes.rows.column(place) for place in self.key.places], len(changes))
            count = len(firsts)
        pairs = np.full((count, 2), -1)
        for column, places in enumerate((np.flatnonzero(weights < 0), np.flatnonzero(weights > 0))):
            pairs[numbers[places], column] = places
            if np.count_nonzero(pairs[:, column] >= 0) < len(places):
                return None
        there = pairs >= 0
        updated = there[:, 0] & there[:, 1]
        if self.key is not None and updated.any():
            equal = ~self._changed(changes.rows, pairs[updated])
            there[np.flatnonzero(updated)[equal]] = False
        kinds = np.where(updated[:, None], _UPDATE, _ALONE)
        if self.upsert:
            there[updated, 0] = False
        return pairs[there], kinds[there].tolist()

    def _changed(self, rows: pa.RecordBatch, pairs: np.ndarray) -> np.ndarray:
        """Whether two rows differ: the one that goes, and the one that comes with the same key."""
        changed = np.zeros(len(pairs), np.bool_)
        for column in rows.columns:
            changed |= differs(*(column.take(pa.array(pairs[:, each])) for each in (0, 1)))
        return changed

    def _one_by_one(self, changes: Changes) -> tuple[Any, list[RowKind]]:
        """As `_at_once`, for any number of rows of a key."""
        keys: list[Any] = list(range(len(changes))) if self.key is None else self.key.of(changes)
        gone: dict[Any, list[int]] = {}
        come: dict[Any, list[int]] = {}
        for place, (key, weight) in enumerate(zip(keys, changes.weight_array().tolist(), strict=True)):
            (come if weight > 0 else gone).setdefault(key, []).extend([place] * abs(weight))
        places: list[int] = []
        kinds: list[RowKind] = []
        for key in dict.fromkeys(keys):
            self._add(key, gone.get(key, []), come.get(key, []), changes, places, kinds)
        return places, kinds

    def _add(
        self, key: Any, gone: list[int], come: list[int], changes: Changes, places: list[int], kinds: list[RowKind]
    ) -> None:
        if self.upsert and len(come) > 1:
            if not self.last_wins:
                raise conflict(self.table, key, [frozen_rows(changes.take(np.array(come)).rows)[i] for i in (0, 1)])
            come = come[-1:]
        pairs = min(len(gone), len(come))
        for old, new in zip(gone[:pairs], come[:pairs], strict=True):
            if not self.upsert:
                places.append(old)
                kinds.append(RowKind.UPDATE_BEFORE)
            places.append(new)
            kinds.append(RowKind.UPDATE_AFTER)
        if not (self.upsert and pairs):
            places.extend(gone[pairs:])
            kinds.extend([RowKind.DELETE] * len(gone[pairs:]))
        places.extend(come[pairs:])
        kinds.extend([RowKind.INSERT] * len(come[pairs:]))


class MaterializeOperator(EpochOperator):
    """Knows all rows of each key, for a sink that replaces by a key which the query does not promise to be unique.

    Hands on what it gets. A key that has two rows at the end of an epoch is an error: no sink could hold both.
    """

    def __init__(self, columns: Sequence[Column], key: Sequence[int], table: str, ttl_ms: int | None = None) -> None:
        super().__init__([columns], columns)
        self.key = KeyColumns(key)
        self.table = table
        self.ttl_ms = ttl_ms

    def open(self) -> None:
        super().open()
        ttl = None if self.ttl_ms is None else ttl_config(self.ttl_ms)
        self._rows = RowState(self.backend, "rows", ttl)

    def finish(self, taken: list[Changes]) -> None:
        changes = taken[0].netted()
        rows = frozen_rows(changes.rows)
        gone: list[Any] = []
        come: list[Any] = []
        changed = by_key(self.key.of(changes), rows, changes.weight_array().tolist())
        befores = self._rows.rows(changed)
        self._rows.apply(changed, self.context.epoch)
        for key, before, after in zip(changed, befores, self._rows.rows(changed), strict=True):
            if len(after) > 1:
                raise conflict(self.table, key, after[:2])
            if before != after:
                gone += before
                come += after
        if gone or come:
            weights = np.repeat(np.array([-1, 1], np.int64), [len(gone), len(come)])
            self.emit(Changes(thawed_rows([*gone, *come], schema_of(self.columns)), weights))


def conflict(table: str, key: Any, rows: Sequence[Any]) -> SqlError:
    return SqlError(
        f"table '{table}': its primary key {key!r} has two rows at once: {rows[0]!r} and {rows[1]!r}; a sink holds one"
        " row for a key. Group the query by the primary key, keep one row of each key with ROW_NUMBER() = 1, or make"
        " the primary key longer"
    )


def ttl_config(ttl_ms: int) -> StateTtlConfig:
    from headwater.common.time import Time

    return StateTtlConfig.new_builder(Time.milliseconds(ttl_ms)).build()
