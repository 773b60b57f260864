"""The rows of a key for operators that recompute: one entry per row, or, if they expire, all in one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, Protocol

import numpy as np

from headwater.state.api import ValueState
from headwater.state.descriptors import ValueStateDescriptor
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.many_keys import update_all, values_of
from headwater.table.stream.operators.aggregate_state import ttl_config, with_ttl
from headwater.table.stream.operators.row_state import ChangedRows, Row, RowState

Counts = tuple[tuple[Row, int], ...]


class KeyRows(Protocol):
    """What `RowState` does."""

    def rows(self, keys: Sequence[Any]) -> list[list[Row]]: ...

    def apply(self, changed: ChangedRows, epoch: int) -> None: ...


def key_rows(backend: KeyedStateBackend, name: str, ttl_ms: int | None, few: bool = False) -> KeyRows:
    """Rows by key. `few`: there are never many of a key, or all are read anyway.

    With a TTL, all rows of a key expire together. If they did not, an operator would no longer know what it has
    handed on, and could not take it back.
    """
    if few or ttl_ms is not None:
        return RowList(backend, f"{name}-list", ttl_ms)
    return RowState(backend, name)


class RowList:
    """All rows of a key in one value, in the order in which they came: ((row, count), ...)."""

    def __init__(self, backend: KeyedStateBackend, name: str, ttl_ms: int | None) -> None:
        self._backend = backend
        descriptor = with_ttl(ValueStateDescriptor(name), ttl_config(ttl_ms))
        self._state: ValueState[Counts] = backend.get_state(descriptor)  # type: ignore[assignment]

    def rows(self, keys: Sequence[Any]) -> list[list[Row]]:
        return [[row for row, count in held for _ in range(count)] for held in self.counts(keys)]

    def counts(self, keys: Sequence[Any]) -> list[Counts]:
        """How often each row of each key is there. A row may come twice."""
        return [held or () for held in values_of(self._backend, self._state, keys)]

    def replace(self, keys: Sequence[Any], rows: Sequence[Row], sizes: np.ndarray) -> None:
        """Store other rows for each key, in order: so many of `rows`."""
        entries = list(zip(rows, repeat(1)))
        ends = np.cumsum(sizes)
        parts = zip((ends - sizes).tolist(), ends.tolist(), strict=True)
        after = [tuple(entries[start:end]) or None for start, end in parts]
        update_all(self._backend, self._state, keys, values_of(self._backend, self._state, keys), after)

    def apply(self, changed: ChangedRows, epoch: int) -> None:
        keys = list(changed)
        before = values_of(self._backend, self._state, keys)
        after = [_applied(held, changed[key]) for key, held in zip(keys, before, strict=True)]
        update_all(self._backend, self._state, keys, before, after)


def _applied(held: Counts | None, changes: Sequence[tuple[Row, int]]) -> Any:
    counts = dict(held or ())
    for row, weight in changes:
        count = counts.get(row, 0) + weight
        if count > 0:
            counts[row] = count
        else:
            counts.pop(row, None)
    return tuple(counts.items()) or None
