"""The rows of one input of a join by key, in keyed state, and those of them that an epoch is about."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.state.api import ValueState
from headwater.state.descriptors import MapStateDescriptor, ValueStateDescriptor
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.many_keys import Maps, update_all, values_of
from headwater.state.ttl.config import StateTtlConfig
from headwater.table.stream.operators.row_state import Row
from headwater.table.stream.rows import frozen_rows, thawed_rows


def time_to_live(ttl_ms: int | None) -> StateTtlConfig | None:
    """State lives that long after it was last written, by processing time."""
    return None if ttl_ms is None else StateTtlConfig.new_builder(ttl_ms).update_ttl_on_create_and_write().build()


class JoinState:
    """A multiset of rows per key. `name` (of the side) is part of what is persisted.

    With each row stands how many rows of the other side match it, for joins that ask for it.
    """

    def __init__(self, backend: KeyedStateBackend, name: str, ttl_ms: int | None) -> None:
        rows, total = MapStateDescriptor(f"{name}-rows"), ValueStateDescriptor(f"{name}-count")
        ttl = time_to_live(ttl_ms)
        if ttl is not None:
            rows.enable_time_to_live(ttl)
            total.enable_time_to_live(ttl)
        self._backend = backend
        self.rows = Maps(backend, backend.get_state(rows))  # {row: (count, matches)}
        self._total: ValueState[int] = backend.get_state(total)
        """How many rows the key has. Kept only if the other side needs it."""

    def count(self, keys: Sequence[Any], changes: ChangedRows) -> np.ndarray:
        """Bring the number of rows of each key up to date. Return it before and after."""
        before = values_of(self._backend, self._total, keys)
        after = [max((old or 0) + gain, 0) for old, gain in zip(before, map(changes.gain, keys), strict=True)]
        changed = [place for place, new in enumerate(after) if new != (before[place] or 0)]
        update_all(
            self._backend,
            self._total,
            [keys[place] for place in changed],
            [before[place] for place in changed],
            [after[place] or None for place in changed],
        )
        return np.array([[old or 0 for old in before], after], np.int64)


class ChangedRows:
    """The changes of one side, those of equal rows added up. `rows` has all of them as columns."""

    def __init__(self, rows: pa.RecordBatch, keys: Sequence[Any], weights: list[int]) -> None:
        self.rows = rows
        self.of_keys: dict[Any, dict[Row, int]] = {}
        """{key: {row: its first place in `rows`}}"""
        self.weights = weights
        """By place, those of equal rows at their first one. Changed here."""
        of_keys = self.of_keys
        for place, (key, row) in enumerate(zip(keys, frozen_rows(rows), strict=True)):
            of_key = of_keys.get(key)
            if of_key is None:
                of_keys[key] = {row: place}
            elif (first := of_key.setdefault(row, place)) != place:
                weights[first] += weights[place]

    def gain(self, key: Any) -> int:
        """How many rows more the key has."""
        return sum(map(self.weights.__getitem__, self.of_keys.get(key, _NOTHING).values()))


class Gathered:
    """Rows of one side for all touched keys: key after key, in each those that change first."""

    def __init__(self, changes: ChangedRows | None = None) -> None:
        self.rows: list[Row] = []
        self._changes = changes
        self._places: list[int] = []  # per row: its place in the changes, or behind them in the rows held
        self._held: list[Row] = []  # rows that do not change
        self._entries: list[tuple[int, int]] = []  # per row: (count before, matches)
        self._afters: list[int] = []  # of the rows that change: the count after
        self._starts: list[int] = []  # per key
        self._changed: list[int] = []  # per key: how many of its rows change

    def add_keys(self, state: JoinState, keys: Sequence[Any], everything: Container[Any]) -> None:
        """Add the rows of keys: those that change; of the keys in `everything` all."""
        assert self._changes is not None
        rows, entries, afters, places = self.rows, self._entries, self._afters, self._places
        all_of, some_of = state.rows.all_of, state.rows.some_of
        of_keys, weights = self._changes.of_keys, self._changes.weights
        for key in keys:
            start = len(rows)
            changed = of_keys.get(key, _NOTHING)
            whole = key in everything
            held = all_of(key) if whole else some_of(key, changed)
            for row, place in changed.items():
                weight, entry = weights[place], held.get(row, _NONE)
                after = max(entry[0] + weight, 0)  # a row that expired cannot be taken back
                if weight and (after or entry[0]):
                    rows.append(row)
                    entries.append(entry)
                    afters.append(after)
                    places.append(place)
            self._starts.append(start)
            self._changed.append(len(rows) - start)
            if whole and held:
                if changed:
                    held = {
                        row: entry for row, entry in held.items() if row not in changed or not weights[changed[row]]
                    }
                self._hold(held)
                entries += held.values()

    def add_new(self, counts: Mapping[Row, int]) -> None:
        """Add the rows of one more key, none of which was there before."""
        self._starts.append(len(self.rows))
        self._changed.append(len(counts))
        self._hold(counts)
        self._entries += [_NONE] * len(counts)
        self._afters += counts.values()

    def _hold(self, rows: Collection[Row]) -> None:
        first = len(self._held) + (0 if self._changes is None else self._changes.rows.num_rows)
        self._places += range(first, first + len(rows))
        self._held += rows
        self.rows += rows

    def freeze(self, schema: pa.Schema) -> None:
        """All keys are there: make columns and arrays of them."""
        count = len(self.rows)
        self.batch = self._columns(schema)
        entries = np.fromiter(chain.from_iterable(self._entries), np.int64, 2 * count).reshape(count, 2)
        self.before, self.matches = np.ascontiguousarray(entries.T)
        self.starts = np.array(self._starts, np.int64)
        """Of each key, its first place."""
        self.sizes = np.diff(self.starts, append=count)
        """Of each key, the number of its rows."""
        self.changing = np.array(self._changed, np.int64)
        """Of each key, the number of its rows that change."""
        self.keys = np.repeat(np.arange(len(self.starts)), self.sizes)
        """The number of each row's key."""
        self.changes = np.arange(count) < (self.starts + self.changing)[self.keys]
        """Whether the row itself comes or goes."""
        self.after = self.before.copy()
        self.after[self.changes] = self._afters

    def _columns(self, schema: pa.Schema) -> pa.RecordBatch:
        """The rows as columns. Those that change are columns already."""
        held = thawed_rows(self._held, schema)
        if self._changes is None:
            return held
        both = pa.concat_batches([self._changes.rows, held]) if self._held else self._changes.rows
        return both.take(pa.array(self._places, pa.int64()))


_NOTHING: dict[Row, int] = {}
_NONE = (0, 0)
"""The entry of a row that is not there."""
