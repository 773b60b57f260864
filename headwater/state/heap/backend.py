"""Keyed state as Python objects in this process's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from headwater.state.evolution.migration import Convert
from headwater.state.heap.columns import HeapColumns, RowForm
from headwater.state.heap.list import HeapListState
from headwater.state.heap.map import HeapMapState
from headwater.state.heap.panes import HeapElementPanes, HeapFoldedPanes
from headwater.state.heap.store import HeapStore, KeyScope
from headwater.state.heap.value import HeapValueState
from headwater.state.keys.key_groups import by_key_group, pairs_by_key_group
from headwater.state.registered import Registered
from headwater.state.snapshot import payload as codec
from headwater.state.snapshot.entries import Entries
from headwater.state.snapshot.layout import StateLayout
from headwater.state.snapshot.section import KEYED, Section
from headwater.state.store_backend import StoreBackend
from headwater.state.timers import TimerQueue
from headwater.state.ttl.expiring import TtlPolicy

_STORES: dict[str, Callable[[KeyScope], HeapStore]] = {
    "value": HeapValueState,
    "list": HeapListState,
    "map": HeapMapState,
    "reducing": HeapValueState,
    "aggregating": HeapValueState,
    "folded panes": HeapFoldedPanes,
    "element panes": HeapElementPanes,
}


class HeapKeyedStateBackend(StoreBackend[HeapStore]):
    """State at memory speed. A state is a dict {key: value}; a namespaced one {(key, namespace): value}."""

    def _new_store(self, name: str, layout: StateLayout) -> HeapStore | None:
        store_class = _STORES.get(layout.kind)
        if store_class is None:
            return None
        store = store_class(self._scope(layout))
        store.lock = self._boundary
        return store

    def as_columns(self, name: str, form: RowForm) -> HeapColumns | None:
        """Keep a value state in arrays from now on; None if it has changes already, or TTL, or is no value state.

        All its values must be in `form`. Called when an operator opens, before the first epoch.
        """
        registered = self._states[name]
        store = registered.store
        if isinstance(store, HeapColumns):
            return store
        if not isinstance(store, HeapValueState) or registered.state is not store or not store.is_settled():
            return None
        columns = HeapColumns(self._scope(registered.layout), form)
        columns.lock = self._boundary
        columns.load_entries(store.full_entries(store.keys_stored()))
        registered.store = registered.state = columns
        return columns

    def _convert(self, registered: Registered[HeapStore], convert: Convert) -> None:
        registered.store.convert(convert, dated=registered.layout.ttl)

    def _load_entries(self, store: HeapStore, entries: Entries) -> None:
        store.load_entries(entries)

    # --- epochs

    def commit_epoch(self, *, cut: bool = False) -> None:
        with self._boundary:
            for part in self._parts():
                part.commit(cut=cut)
            self._in_epoch = False

    def rollback_epoch(self) -> None:
        self.rollbacks += 1
        with self._boundary:
            for part in self._parts():
                part.rollback()
            self._in_epoch = False

    def rewind(self) -> bool:
        self.rollbacks += 1
        for registered in self._states.values():
            registered.form.checkpoint_failed()
        with self._boundary:
            for part in self._parts():
                part.rewind()
            self._in_epoch = False
        return True

    def _parts(self) -> list[HeapStore | TimerQueue]:
        stores = [registered.store for registered in self._states.values()]
        return [*stores, self.event_timers, self.processing_timers]

    # --- sections

    def delta_sections(self) -> list[Section]:
        sections: list[Section] = []
        for name, registered in self._states.items():
            self._clean_up(registered)
            store = registered.store
            log = store.changes()
            if registered.form.delta_is_whole():
                log = store.log_of_all(log)
            for group, entries in self._delta_entries(store, log, registered.layout):
                if entries:
                    sections.append(self._section(name, registered.layout, group, entries))
                self.breathe()
        sections += self.event_timers.delta_sections()
        sections += self.processing_timers.delta_sections()
        return sections

    def _delta_entries(
        self, store: HeapStore, log: dict[Any, Any], layout: StateLayout
    ) -> Iterator[tuple[int, Entries]]:
        if isinstance(store, HeapColumns):
            yield from store.delta_by_group(log, self.max_parallelism)
            return
        for group, keys in self._by_key_group(store.keys_changed(log), layout).items():
            yield group, store.delta_entries(keys, log)

    def _full_entries(self, registered: Registered[HeapStore]) -> Iterator[tuple[int, Entries]]:
        store = registered.store
        if isinstance(store, HeapColumns):
            yield from store.full_by_group(self.max_parallelism)
            return
        for group, keys in self._by_key_group(store.keys_stored(), registered.layout).items():
            yield group, store.full_entries(keys)

    def _section(self, name: str, layout: StateLayout, group: int, entries: Entries) -> Section:
        unshared = self._states[name].store.unshared
        return Section(self.uid, KEYED, name, group, codec.encode(layout, entries, self.uid, name, unshared))

    def _by_key_group(self, keys: Iterable[Any], layout: StateLayout) -> dict[int, list[Any]]:
        """Return {key group: keys}, in the order of the groups. Key groups are computed only here, never per record."""
        return (pairs_by_key_group if layout.namespaced else by_key_group)(keys, self.max_parallelism)

    # --- all keys

    def number_of_entries(self) -> int:
        return sum(registered.store.number() for registered in self._states.values())

    def _pairs_of(self, store: HeapStore, key: Any) -> list[Any]:
        return [pair for pair in store.keys_stored() if pair[0] == key]

    def _keys_to_examine(self, registered: Registered[HeapStore], policy: TtlPolicy) -> list[Any]:
        store = registered.store
        if not store.table:
            return []
        number = policy.number_to_examine(len(store.undo))
        keys = list(islice(registered.to_examine, number))
        if len(keys) < number:  # the round is over: start the next one with the current keys
            registered.to_examine = iter(list(store.table))
        return keys
