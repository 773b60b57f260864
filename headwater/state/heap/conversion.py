"""Converts all values of a heap table after it is loaded, before its first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.state.heap.list import HeapListState
from headwater.state.heap.map import HeapMapState
from headwater.state.heap.store import HeapStore


def convert_store(store: HeapStore, convert: Callable[[Any], Any], *, stamped: bool = False) -> None:
    """Replace each value, list element or map value of `store` by `convert(value)`.

    `stamped`: values are stored with their expiry date, which stays. Called outside of epochs: it cannot be rolled
    back. If `convert` raises, nothing has changed.
    """
    keys, *columns = store.full_entries(list(store.table), None)
    one = _stamped(convert) if stamped else convert
    if isinstance(store, HeapListState):
        columns[1] = [[one(element) for element in elements] for elements in columns[1]]
    elif isinstance(store, HeapMapState):
        columns[0] = [{key: one(value) for key, value in entries.items()} for entries in columns[0]]
    else:
        columns[0] = [one(value) for value in columns[0]]
    store.table.clear()
    store.load_entries((keys, *columns))


def _stamped(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda pair: (convert(pair[0]), *pair[1:])
