"""What groups keep: how many rows they have, and the accumulators of all calls, in one entry of state per group.

An entry says which calls it has, so that a query with one more aggregate finds those of the others: it is the tuple
(layout, number of rows, accumulators...). The layout is `meaning:number of accumulators` of each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from operator import itemgetter
from typing import Any, cast

import numpy as np
import pyarrow as pa

from headwater.state.api import ValueState
from headwater.state.descriptors import ValueStateDescriptor
from headwater.state.heap.backend import HeapKeyedStateBackend
from headwater.state.heap.columns import HeapColumns, Piece
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.many_keys import update_all, values_of
from headwater.state.snapshot.packed import Packed, packed_array, packed_repeat, packed_rows
from headwater.state.ttl.config import StateTtlConfig
from headwater.table.stream.operators.aggregate_calls import Call
from headwater.table.stream.operators.aggregate_state import with_ttl
from headwater.table.stream.operators.row_state import Row
from headwater.table.stream.rows import frozen_column, is_frozen_as_integer, thawed_column

GROUPS = "groups"

Accumulators = dict[str, list[pa.Array]]
"""The accumulator columns of each call, by its meaning."""

_LAYOUT, _ROWS, _FIRST = 0, 1, 2
"""Places in an entry."""


def group_store(backend: KeyedStateBackend, calls: Sequence[Call], ttl: StateTtlConfig | None) -> GroupStore:
    """Make the fastest store that fits: on the heap, groups that do not expire are kept in arrays."""
    store = GroupStore(backend, calls, ttl)
    if ttl is None and isinstance(backend, HeapKeyedStateBackend) and store.is_uniform():
        columns = backend.as_columns(GROUPS, GroupForm(store))
        if columns is not None:
            return ColumnarGroupStore(backend, calls, columns)
    return store


class GroupStore:
    """The entries of groups, read and written as columns."""

    def __init__(self, backend: KeyedStateBackend, calls: Sequence[Call], ttl: StateTtlConfig | None) -> None:
        self._backend = backend
        self._state: ValueState[Row] = backend.get_state(with_ttl(ValueStateDescriptor(GROUPS), ttl))  # type: ignore[assignment]
        self._calls = tuple(calls)
        self.layout = ",".join(f"{call.meaning}:{len(call.kept)}" for call in calls)
        self.empty: Row = (self.layout, 0, *(each.empty for call in calls for each in call.kept))

    in_arrays = False
    """All keys are found at once, without a look at each."""

    def keys(self) -> Sequence[Any]:
        """The keys of all groups."""
        return self._backend.keys(GROUPS)

    def is_uniform(self) -> bool:
        """Whether all entries have the calls of this query."""
        keys = self._backend.keys(GROUPS)
        return {each[_LAYOUT] for each in values_of(self._backend, self._state, keys)} <= {self.layout}

    def entries(self, keys: Sequence[Any]) -> Any:
        """What there is of each group. No key may come twice."""
        return values_of(self._backend, self._state, keys)

    def present(self, entries: Any) -> np.ndarray:
        """Whether there is such a group."""
        return np.array([each is not None for each in entries], np.bool_)

    def columns(self, entries: Any) -> tuple[pa.Array, Accumulators]:
        """How many rows each group has, and its accumulators."""
        rows = cast(list[Row], entries)
        if None in entries:
            rows = [self.empty if each is None else each for each in entries]
        if {*map(itemgetter(_LAYOUT), rows)} - {self.layout}:
            rows = list(map(self.adapted, rows))
        found: Accumulators = {}
        place = _FIRST
        for call in self._calls:
            # Not `zip(*rows)`, which makes an iterator for every row.
            found[call.meaning] = [
                thawed_column(list(map(itemgetter(place + number), rows)), kept.kind)
                for number, kept in enumerate(call.kept)
            ]
            place += len(call.kept)
        return pa.array(list(map(itemgetter(_ROWS), rows)), pa.int64()), found

    def write(
        self,
        keys: Sequence[Any],
        before: Any,
        counts: pa.Array,
        accumulators: Accumulators,
        alive: np.ndarray,
    ) -> None:
        """Store the groups that are alive, and remove the others. `before` are the groups' entries."""
        columns = self.in_order(counts, accumulators)
        layouts = [self.layout] * len(keys)
        rows: list[Row | None] = list(zip(layouts, *(frozen_column(column) for column in columns), strict=True))
        if not alive.all():
            rows = [row if lives else None for row, lives in zip(rows, alive.tolist(), strict=True)]
        update_all(self._backend, self._state, keys, before, rows)

    def clear(self, keys: Sequence[Any], before: Any) -> None:
        update_all(self._backend, self._state, keys, before, [None] * len(keys))

    def in_order(self, counts: pa.Array, accumulators: Accumulators) -> list[pa.Array]:
        """The columns of entries, behind the layout."""
        return [counts, *(column for call in self._calls for column in accumulators[call.meaning])]

    @property
    def kinds(self) -> list[pa.DataType]:
        """The types of `in_order`."""
        return [pa.int64(), *(kept.kind for call in self._calls for kept in call.kept)]

    def adapted(self, entry: Row) -> Row:
        """An entry with the calls of this query: those that it lacks begin now."""
        if entry[_LAYOUT] == self.layout:
            return entry
        places = _places(entry[_LAYOUT])
        found: list[Any] = [self.layout, entry[_ROWS]]
        for call in self._calls:
            at = places.get((call.meaning, len(call.kept)))
            found += [each.empty for each in call.kept] if at is None else entry[at : at + len(call.kept)]
        return tuple(found)


class ColumnarGroupStore(GroupStore):
    """Groups in arrays, with no object per group but its key."""

    def __init__(self, backend: KeyedStateBackend, calls: Sequence[Call], columns: HeapColumns) -> None:
        super().__init__(backend, calls, None)
        self._held = columns
        self._form = GroupForm(self)

    in_arrays = True

    def keys(self) -> Sequence[Any]:
        return self._held.batch_of_keys()

    def entries(self, keys: Sequence[Any]) -> Piece:
        return self._held.read(keys)

    def present(self, entries: Piece) -> np.ndarray:
        return entries.alive

    def columns(self, entries: Piece) -> tuple[pa.Array, Accumulators]:
        counts, *accumulators = self._form.thawed(entries.columns, entries.alive)
        given = iter(accumulators)
        return counts, {call.meaning: [next(given) for _ in call.kept] for call in self._calls}

    def write(
        self, keys: Sequence[Any], before: Piece, counts: pa.Array, accumulators: Accumulators, alive: np.ndarray
    ) -> None:
        if (before.alive | alive).any():
            self._held.write(before, alive, self._form.frozen(self.in_order(counts, accumulators)))

    def clear(self, keys: Sequence[Any], before: Piece) -> None:
        self._held.remove(before)


class GroupForm:
    """Entries of groups as arrays: two for a column of numbers or times (the second says what is not NULL), else one.

    Other values are Python's, in the form of `frozen_column`.
    """

    def __init__(self, store: GroupStore) -> None:
        self._layout, self._empty, self._types = store.layout, store.empty, store.kinds
        self._adapted = store.adapted
        self._stored = [_stored(kind) for kind in self._types]
        self.kinds: Sequence[Any] = [
            kind for stored in self._stored for kind in ((object,) if stored is None else (stored, np.bool_))
        ]

    def thawed(self, columns: Sequence[np.ndarray], alive: np.ndarray) -> list[pa.Array]:
        """Arrays as columns of Arrow. A row that is not alive has the empty values."""
        given, dead = iter(columns), np.flatnonzero(~alive)
        found: list[pa.Array] = []
        for kind, stored, empty in zip(self._types, self._stored, self._empty[_ROWS:], strict=True):
            values = next(given)
            if stored is None:
                objects = values.tolist()
                for place in dead.tolist():
                    objects[place] = empty
                found.append(thawed_column(objects, kind))
                continue
            valid = next(given)
            if len(dead):
                values, valid = values.copy(), valid.copy()
                values[dead], valid[dead] = (0 if empty is None else empty), empty is not None
            mask = None if valid.all() else ~valid
            found.append(pa.array(values, mask=mask, from_pandas=False).view(kind))
        return found

    def frozen(self, columns: Sequence[pa.Array]) -> list[np.ndarray]:
        """Columns of Arrow as arrays."""
        found: list[np.ndarray] = []
        for column, stored in zip(columns, self._stored, strict=True):
            if stored is None:
                found.append(np.fromiter(frozen_column(column), object, len(column)))
                continue
            values = column.view(pa.from_numpy_dtype(stored))
            if values.null_count:
                found += [values.fill_null(0).to_numpy(), values.is_valid().to_numpy(zero_copy_only=False)]
            else:
                found += [values.to_numpy(), np.ones(len(column), np.bool_)]
        return found

    def rows(self, columns: Sequence[np.ndarray]) -> list[Any]:
        thawed = self.thawed(columns, np.ones(len(columns[0]), np.bool_))
        return list(zip([self._layout] * len(columns[0]), *map(frozen_column, thawed), strict=True))

    def packed(self, columns: Sequence[np.ndarray]) -> Packed:
        given = iter(columns)
        found = [packed_repeat(self._layout, len(columns[0]))]
        for kind, stored in zip(self._types, self._stored, strict=True):
            values = next(given)
            valid = None if stored is None else next(given)
            if valid is not None and _as_numbers(kind, values):
                found.append(packed_array(values, valid))
            elif valid is None:
                found.append(values.tolist())
            else:
                found.append(frozen_column(pa.array(values, mask=~valid, from_pandas=False).view(kind)))
        return packed_rows(found)

    def columns(self, rows: Sequence[Any]) -> list[np.ndarray]:
        given = list(map(self._adapted, rows))
        kinds = enumerate(self._types, _ROWS)
        return self.frozen([thawed_column([row[place] for row in given], kind) for place, kind in kinds])


def _stored(kind: pa.DataType) -> Any:
    """The numbers that values of that type are; None if they are none."""
    if pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return np.dtype(kind.to_pandas_dtype())
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return np.dtype(f"i{kind.bit_width // 8}")
    return None


def _as_numbers(kind: pa.DataType, values: np.ndarray) -> bool:
    """Whether `frozen_column` leaves values of that type as the numbers that they are stored as."""
    if pa.types.is_floating(kind):
        return not np.isnan(values).any()
    return pa.types.is_integer(kind) or is_frozen_as_integer(kind)


@cache
def _places(layout: str) -> dict[tuple[str, int], int]:
    """Where the accumulators of each call begin: {(meaning, how many): place}."""
    found: dict[tuple[str, int], int] = {}
    place = _FIRST
    for part in layout.split(",") if layout else ():
        meaning, count = part.split(":")
        found[meaning, int(count)] = place
        place += int(count)
    return found
