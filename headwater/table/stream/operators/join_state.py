"""The rows of one input of a join by key, in keyed state, and those of them that an epoch is about."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
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
from headwater.table.stream.rows import thawed_rows


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

    def count(self, keys: Sequence[Any], changes: Mapping[Any, Mapping[Row, int]]) -> np.ndarray:
        """Bring the number of rows of each key up to date. Return it before and after."""
        before = values_of(self._backend, self._total, keys)
        gains = (sum(changes[key].values()) if key in changes else 0 for key in keys)
        after = [max((old or 0) + gain, 0) for old, gain in zip(before, gains, strict=True)]
        changed = [place for place, new in enumerate(after) if new != (before[place] or 0)]
        update_all(
            self._backend,
            self._total,
            [keys[place] for place in changed],
            [before[place] for place in changed],
            [after[place] or None for place in changed],
        )
        return np.array([[old or 0 for old in before], after], np.int64)


class Gathered:
    """Rows of one side for all touched keys: key after key, in each those that change first."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._entries: list[tuple[int, int]] = []  # per row: (count before, matches)
        self._afters: list[int] = []  # of the rows that change: the count after
        self._starts: list[int] = []  # per key
        self._changed: list[int] = []  # per key: how many of its rows change

    def add_keys(
        self,
        state: JoinState,
        keys: Sequence[Any],
        changes: Mapping[Any, Mapping[Row, int]],
        everything: Container[Any],
    ) -> None:
        """Add the rows of keys: those that change; of the keys in `everything` all."""
        rows, entries, afters = self.rows, self._entries, self._afters
        all_of, some_of = state.rows.all_of, state.rows.some_of
        nothing: Mapping[Row, int] = {}
        for key in keys:
            start = len(rows)
            changed = changes.get(key, nothing)
            whole = key in everything
            held = all_of(key) if whole else some_of(key, changed)
            for row, weight in changed.items():
                entry = held.get(row, _NONE)
                after = max(entry[0] + weight, 0)  # a row that expired cannot be taken back
                if after or entry[0]:
                    rows.append(row)
                    entries.append(entry)
                    afters.append(after)
            self._starts.append(start)
            self._changed.append(len(rows) - start)
            if whole and held:
                if changed:
                    held = {row: entry for row, entry in held.items() if row not in changed}
                rows += held
                entries += held.values()

    def add_new(self, counts: Mapping[Row, int]) -> None:
        """Add the rows of one more key, none of which was there before."""
        self._starts.append(len(self.rows))
        self._changed.append(len(counts))
        self.rows += counts
        self._entries += [_NONE] * len(counts)
        self._afters += counts.values()

    def freeze(self, schema: pa.Schema) -> None:
        """All keys are there: make columns and arrays of them."""
        count = len(self.rows)
        self.batch = thawed_rows(self.rows, schema)
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


_NONE = (0, 0)
"""The entry of a row that is not there."""
