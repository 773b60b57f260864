"""The rows of one input of a join by key, in keyed state, and those of them that an epoch is about."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, compress, repeat
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


Entry = tuple[int, int]
"""How often a row is there, and how many rows of the other side match it."""


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


class Section:
    """Rows of some keys, key by key."""

    def __init__(self, keys: np.ndarray, rows: list[Row], entries: np.ndarray) -> None:
        self.keys = keys
        """Of each row, the number of its key."""
        self.rows = rows
        self.entries = entries
        """Of each row, (count, matches)."""

    @staticmethod
    def of(
        numbers: Mapping[Any, int] | Sequence[int], rows: Mapping[Any, Collection[Row]], entries: Iterable[Entry]
    ) -> Section:
        """`numbers` are those of the keys in `rows`."""
        sizes = np.fromiter(map(len, rows.values()), np.int64, len(rows))
        keys = np.repeat(np.fromiter(map(numbers.__getitem__, rows), np.int64, len(rows)), sizes)
        flat = np.fromiter(chain.from_iterable(entries), np.int64, 2 * len(keys))
        return Section(keys, list(chain.from_iterable(rows.values())), flat.reshape(-1, 2))

    def only(self, kept: np.ndarray) -> Section:
        return Section(self.keys[kept], list(compress(self.rows, kept)), self.entries[kept])

    def places_of(self, keys: int, first: int) -> np.ndarray:
        """Where the rows of each key begin, if the section begins at `first`, and how many they are."""
        begins = np.flatnonzero(np.diff(self.keys, prepend=-1))
        starts = np.zeros(keys, np.int64)
        starts[self.keys[begins]] = begins + first
        return np.stack([starts, np.bincount(self.keys, minlength=keys)])


class Gathered:
    """Rows of one side for all touched keys: first those that change, key by key, then others, key by key."""

    def __init__(
        self, keys: int, changing: Section, staying: Section, afters: np.ndarray, columns: pa.RecordBatch
    ) -> None:
        """`keys`: how many there are. `afters`: of the rows that change, the count after. `columns` are all rows."""
        self.batch = columns
        self.rows = [*changing.rows, *staying.rows]
        self.before, self.matches = np.ascontiguousarray(np.concatenate([changing.entries, staying.entries]).T)
        """Of each row, its count before, and how many rows match it."""
        self.after = self.before.copy()
        self.after[: len(afters)] = afters
        self.changes = np.arange(len(self.rows)) < len(afters)
        """Whether the row itself comes or goes."""
        self.keys = np.concatenate([changing.keys, staying.keys])
        """The number of each row's key."""
        self.changing = changing.places_of(keys, 0)
        self.staying = staying.places_of(keys, len(changing.rows))

    @staticmethod
    def of_keys(
        state: JoinState, touched: Sequence[Any], changes: ChangedRows, everything: Collection[Any], schema: pa.Schema
    ) -> Gathered:
        """Of the touched keys the rows that change; of the keys in `everything`, which are touched, all."""
        numbers = dict(zip(touched, range(len(touched)), strict=True))
        of_keys, weights = changes.of_keys, changes.weights
        gets = [held.get for held in state.rows.some_of_each(of_keys)]
        found = (get(row, _NONE) for get, rows in zip(gets, of_keys.values(), strict=True) for row in rows)
        changing = Section.of(numbers, of_keys, found)
        places = np.fromiter(chain.from_iterable(map(dict.values, of_keys.values())), np.int64, len(changing.rows))
        weight, before = np.array(weights, np.int64)[places], changing.entries[:, 0]
        after = np.maximum(before + weight, 0)  # a row that expired cannot be taken back
        kept = (weight != 0) & ((before > 0) | (after > 0))
        if not kept.all():
            changing, after, places = changing.only(kept), after[kept], places[kept]

        whole = dict(zip(everything, state.rows.all_of_each(everything), strict=True))
        for key in whole.keys() & of_keys.keys():
            changed = of_keys[key]
            whole[key] = {
                row: entry for row, entry in whole[key].items() if row not in changed or not weights[changed[row]]
            }
        staying = Section.of(numbers, whole, (entry for held in whole.values() for entry in held.values()))
        # Those that change are columns already.
        columns = changes.rows.take(pa.array(places))
        if staying.rows:
            columns = pa.concat_batches([columns, thawed_rows(staying.rows, schema)])
        return Gathered(len(touched), changing, staying, after, columns)

    @staticmethod
    def of_new(counts: Sequence[Mapping[Row, int]], schema: pa.Schema) -> Gathered:
        """The rows of each key, none of which was there before."""
        changing = Section.of(range(len(counts)), dict(enumerate(counts)), repeat(_NONE))
        after = np.fromiter(chain.from_iterable(each.values() for each in counts), np.int64, len(changing.rows))
        return Gathered(len(counts), changing, Section.of({}, {}, ()), after, thawed_rows(changing.rows, schema))


_NOTHING: dict[Row, int] = {}
_NONE = (0, 0)
"""The entry of a row that is not there."""
