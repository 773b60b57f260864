"""What an aggregation keeps for each group: accumulators, and where they do not suffice, values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.state.api import ValueState
from headwater.state.descriptors import MapStateDescriptor, StateDescriptor, ValueStateDescriptor
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.many_keys import Maps, update_all, values_of
from headwater.state.ttl.config import StateTtlConfig
from headwater.table.stream.operators.row_state import Row
from headwater.table.stream.rows import frozen_column, thawed_column


def ttl_config(ttl_ms: int | None) -> StateTtlConfig | None:
    """State that nobody has written for so long is gone; None: it stays."""
    return None if ttl_ms is None else StateTtlConfig.new_builder(ttl_ms).build()


def with_ttl(descriptor: StateDescriptor, ttl: StateTtlConfig | None) -> StateDescriptor:
    if ttl is not None:
        descriptor.enable_time_to_live(ttl)
    return descriptor


class ColumnState:
    """A few values per key, read and written as columns: one row for each of many keys."""

    def __init__(
        self,
        backend: KeyedStateBackend,
        name: str,
        kinds: Sequence[pa.DataType],
        empty: Row,
        ttl: StateTtlConfig | None = None,
    ) -> None:
        self._backend = backend
        self._state: ValueState[Row] = backend.get_state(with_ttl(ValueStateDescriptor(name), ttl))  # type: ignore[assignment]
        self._kinds = tuple(kinds)
        self._empty = empty

    def entries(self, keys: Sequence[Any]) -> list[Row | None]:
        """What is stored for each key; None: nothing."""
        return values_of(self._backend, self._state, keys)

    def columns(self, entries: Sequence[Row | None]) -> list[pa.Array]:
        """Entries as columns. Keys without one have the empty values."""
        empty = self._empty
        rows = [empty if each is None else each for each in entries]
        # Not `zip(*rows)`, which makes an iterator for every row.
        return [thawed_column(list(map(itemgetter(place), rows)), kind) for place, kind in enumerate(self._kinds)]

    def write(
        self, keys: Sequence[Any], before: Sequence[Row | None], columns: Sequence[pa.Array], alive: Sequence[bool]
    ) -> None:
        """Store a row for each key that is alive, and remove that of the others. `before` are its `entries`."""
        rows: list[Row | None] = list(zip(*(frozen_column(column) for column in columns), strict=True))
        if not all(alive):
            rows = [row if lives else None for row, lives in zip(rows, alive, strict=True)]
        update_all(self._backend, self._state, keys, before, rows)


class CountedRows:
    """How often each row of a key is there, in no order."""

    def __init__(self, backend: KeyedStateBackend, name: str, ttl: StateTtlConfig | None) -> None:
        self._counts = Maps(backend, backend.get_state(with_ttl(MapStateDescriptor(name), ttl)))  # {row: count}

    def apply(self, keys: Sequence[Any], rows: Sequence[Row], weights: np.ndarray) -> np.ndarray:
        """Add to counts; no row may come twice for a key. Say of each: 1 it comes, -1 it goes, 0 neither."""
        some_of = self._counts.some_of
        found = [some_of(key, (row,)).get(row, 0) for key, row in zip(keys, rows, strict=True)]
        before = np.array(found, np.int64)
        after = before + weights
        there, was = after > 0, before > 0
        counts: list[int | None] = after.tolist()
        for place in np.flatnonzero(~there).tolist():
            counts[place] = None
        self._counts.update(keys, rows, counts)
        changes: np.ndarray = there.astype(np.int64) - was
        return changes

    def rows(self, key: Any, distinct: bool) -> list[Row]:
        counts = self._counts.all_of(key)
        return list(counts) if distinct else [row for row, count in counts.items() for _ in range(count)]

    def clear(self, keys: Iterable[Any]) -> None:
        self._counts.clear(keys)


class OrderedRows:
    """The rows of a key in the order in which they came. Of equal rows, the oldest is taken back first."""

    def __init__(self, backend: KeyedStateBackend, name: str, ttl: StateTtlConfig | None) -> None:
        self._places = Maps(backend, backend.get_state(with_ttl(MapStateDescriptor(name), ttl)))  # {row: places}

    def apply(self, key: Any, row: Row, weight: int, place: int) -> None:
        """Add the row `weight` times at a place in the order, which grows from call to call, or take it away."""
        places = self._places.some_of(key, (row,)).get(row, ())
        left = (*places, *(place,) * weight) if weight > 0 else places[-weight:]
        self._places.update((key,), (row,), (left or None,))

    def rows(self, key: Any, distinct: bool) -> list[Row]:
        places = self._places.all_of(key)
        if distinct:
            held = [(each[0], row) for row, each in places.items()]
        else:
            held = [(place, row) for row, each in places.items() for place in each]
        held.sort(key=_place)
        return [row for _, row in held]

    def clear(self, keys: Iterable[Any]) -> None:
        self._places.clear(keys)


def _place(entry: tuple[int, Row]) -> int:
    return entry[0]
