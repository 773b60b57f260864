"""Keyed state of one operator without the operator: load it from sections, inspect it, change it, write it anew.

For tools. A state's layout comes from its sections, not from a descriptor. So an aggregating state shows its
accumulators, and a state with TTL also shows expired entries that were not cleaned up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.common.errors import StateError
from headwater.state.heap.backend import HeapKeyedStateBackend
from headwater.state.heap.list import HeapListState
from headwater.state.heap.map import HeapMapState
from headwater.state.heap.panes import HeapElementPanes, HeapFoldedPanes
from headwater.state.heap.store import ABSENT, HeapStore
from headwater.state.snapshot.entries import ListEntries, ValueEntries
from headwater.state.snapshot.section import KEYED, Section


class StoredKeyedState(HeapKeyedStateBackend):
    """The state of the loaded key groups. It has no epochs: `sections_of` contains every change at once."""

    def entries(self, name: str) -> Iterator[tuple[Any, Any, Any]]:
        """Yield (key, namespace, value) of every entry. The namespace is None if the state has no namespaces."""
        registered = self._known(name)
        for stored in list(registered.store.keys_stored()):
            key, namespace = stored if registered.layout.namespaced else (stored, None)
            yield key, namespace, self.committed_value(name, key, namespace)

    def put(self, name: str, key: Any, namespace: Any, value: Any) -> None:
        """Store `value` in the same form as `entries` yields it; None removes the entry.

        In a state with TTL, a replaced value keeps its expiry date. A new value has none: it gets one when the job
        reads it, or when the job's clean-up finds it after the first watermark.
        """
        registered = self._known(name)
        layout, store = registered.layout, registered.store
        if namespace is not None and not layout.namespaced:
            raise StateError(
                f"state '{name}' of operator '{self.uid}' has no namespaces, but one is given: {namespace!r}"
            )
        self.current_key, self.current_namespace = key, namespace
        stored = store.committed((key, namespace) if layout.namespaced else key)
        store.clear()
        if value is not None:
            _insert(store, (key, namespace) if layout.namespaced else key, _dated(store, stored, value, layout.ttl))

    def sections_of(self, name: str) -> Iterator[Section]:
        """Yield the sections of one whole state."""
        return (section for section in self.full_sections() if section.kind == KEYED and section.name == name)


def _dated(store: HeapStore, before: Any, value: Any, ttl: bool) -> Any:
    """Return `value` as the store holds it: with the expiry dates of the entry before, if the state has a TTL."""
    if not ttl:
        return value
    if isinstance(store, HeapListState):
        dates = [] if before is ABSENT else [date for _, date in before]
        return [(element, dates[index] if index < len(dates) else None) for index, element in enumerate(value)]
    if isinstance(store, HeapMapState):
        old = {} if before is ABSENT else before
        return {key: (each, old[key][1] if key in old else None) for key, each in dict(value).items()}
    return (value, None if before is ABSENT else before[1])


def _insert(store: HeapStore, stored_key: Any, value: Any) -> None:
    if isinstance(store, HeapFoldedPanes):
        store.load_entries(ValueEntries([stored_key], [value]))
    elif isinstance(store, HeapElementPanes):
        store.load_entries(ListEntries.of_lists([stored_key], [list(value)]))
    elif isinstance(store, HeapListState):
        store.update(list(value))
    elif isinstance(store, HeapMapState):
        store.put_all(dict(value))
    else:
        store.update(value)  # type: ignore[attr-defined]
