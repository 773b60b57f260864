"""Keyed state as Python objects in this process's memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from headwater.common.errors import StateError
from headwater.state import payload as codec
from headwater.state.api import State
from headwater.state.descriptors import AggregatingStateDescriptor, ReducingStateDescriptor, StateDescriptor
from headwater.state.folding import FoldingAggregatingState, FoldingReducingState
from headwater.state.heap_conversion import convert_store
from headwater.state.heap_list import HeapListState
from headwater.state.heap_map import HeapMapState
from headwater.state.heap_panes import HeapElementPanes, HeapFoldedPanes
from headwater.state.heap_store import ABSENT, HeapStore, KeyScope
from headwater.state.heap_value import HeapValueState
from headwater.state.key_groups import by_key_group
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.layout import StateLayout
from headwater.state.migration import refuse_changed_keys
from headwater.state.panes import ElementPanes, FoldedPanes
from headwater.state.section import EVENT_TIMERS, KEYED, PROCESSING_TIMERS, Section
from headwater.state.stored_form import StoredForm
from headwater.state.timers import TimerQueue
from headwater.state.ttl import TtlPolicy, TtlState, expiring

_STORES: dict[str, Callable[[KeyScope], HeapStore]] = {
    "value": HeapValueState,
    "list": HeapListState,
    "map": HeapMapState,
    "reducing": HeapValueState,
    "aggregating": HeapValueState,
    "folded panes": HeapFoldedPanes,
    "element panes": HeapElementPanes,
}


@dataclass
class _Registered:
    """One state of the backend. Restored ones have a store only, until their descriptor comes."""

    form: StoredForm
    store: HeapStore
    state: State | None = None
    descriptor: StateDescriptor | None = None
    policy: TtlPolicy | None = None
    expiring: TtlState | None = None
    to_examine: Iterator[Any] = field(default_factory=lambda: iter(()))
    """Keys that the current round of clean-up has not looked at yet."""

    @property
    def layout(self) -> StateLayout:
        return self.form.layout


class _NamespaceScope:
    """Makes a state about (key, namespace); plain states do not pay for it."""

    __slots__ = ("_backend",)

    def __init__(self, backend: KeyedStateBackend) -> None:
        self._backend = backend

    @property
    def current_key(self) -> Any:
        return (self._backend.current_key, self._backend.current_namespace)

    @current_key.setter
    def current_key(self, pair: tuple[Any, Any]) -> None:
        self._backend.current_key, self._backend.current_namespace = pair


class HeapKeyedStateBackend(KeyedStateBackend):
    """State at memory speed. A state is a dict {key: value}; a namespaced one {(key, namespace): value}."""

    def __init__(self, uid: str, max_parallelism: int, key_groups: range) -> None:
        super().__init__(uid, max_parallelism, key_groups)
        self._states: dict[str, _Registered] = {}
        self._namespace_scope = _NamespaceScope(self)
        self._in_epoch = False
        self._boundary = threading.Lock()
        """Held while an epoch ends and while a query reads: a roll-back must not happen within a query."""

    def _get_state(self, descriptor: StateDescriptor, namespaced: bool) -> State:
        ttl_config = descriptor.get_ttl_config()
        layout = StateLayout.of(descriptor, namespaced)
        registered = self._registered(descriptor.name, layout)
        if registered.state is not None:
            return registered.state
        convert = registered.form.asked_for(self.uid, descriptor, layout)
        if convert is not None:
            convert_store(registered.store, convert, stamped=layout.ttl)
        plain = registered.store
        assert isinstance(plain, State)
        state: State = plain
        if ttl_config is not None:
            registered.policy = TtlPolicy(ttl_config, self)
            state = registered.expiring = expiring(plain, registered.policy)
        if isinstance(descriptor, ReducingStateDescriptor):
            state = FoldingReducingState(state, descriptor.get_reduce_function())  # type: ignore[arg-type]
        elif isinstance(descriptor, AggregatingStateDescriptor):
            state = FoldingAggregatingState(state, descriptor.get_agg_function())  # type: ignore[arg-type]
        registered.descriptor = descriptor
        registered.state = state
        return state

    def get_folded_panes(self, name: str) -> FoldedPanes:
        panes = self._panes(name, "folded panes")
        assert isinstance(panes, HeapFoldedPanes)
        return panes

    def get_element_panes(self, name: str) -> ElementPanes:
        panes = self._panes(name, "element panes")
        assert isinstance(panes, HeapElementPanes)
        return panes

    def _panes(self, name: str, kind: str) -> HeapStore:
        registered = self._registered(name, StateLayout(kind, ttl=False, namespaced=True))
        registered.form.asked_for_without_descriptor(self.uid, name)
        return registered.store

    def _registered(self, name: str, layout: StateLayout) -> _Registered:
        registered = self._states.get(name)
        if registered is None:
            store_class = _STORES.get(layout.kind)
            if store_class is None:
                raise StateError(f"state '{name}' of operator '{self.uid}' is of unknown kind '{layout.kind}'")
            scope: KeyScope = self._namespace_scope if layout.namespaced else self
            registered = self._states[name] = _Registered(StoredForm(layout), store_class(scope))
            registered.store.lock = self._boundary
        elif registered.layout.shape != layout.shape:
            raise StateError(
                f"state '{name}' of operator '{self.uid}' is {registered.layout}, but is asked for as {layout}; "
                f"use the same descriptor everywhere, or another name for the new state"
            )
        return registered

    def begin_epoch(self) -> None:
        if self._in_epoch:
            raise StateError(f"operator '{self.uid}': an epoch begins before the last one was committed or rolled back")
        self._in_epoch = True

    def commit_epoch(self, *, cut: bool = False) -> None:
        with self._boundary:
            for part in self._parts():
                part.commit(cut=cut)
            self._in_epoch = False

    def checkpoint_completed(self) -> None:
        for registered in self._states.values():
            registered.form.checkpoint_completed()
        for part in self._parts():
            part.checkpoint_completed()

    def checkpoint_failed(self) -> None:
        for registered in self._states.values():
            registered.form.checkpoint_failed()
        for part in self._parts():
            part.checkpoint_failed()

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

    def rollback_epoch(self) -> None:
        self.rollbacks += 1
        with self._boundary:
            for part in self._parts():
                part.rollback()
            self._in_epoch = False

    def delta_sections(self) -> list[Section]:
        sections: list[Section] = []
        for name, registered in self._states.items():
            self._clean_up(registered)
            store = registered.store
            log = store.changes()
            if registered.form.delta_is_whole():
                log = {**log, **dict.fromkeys(store.table, ABSENT)}
            for group, keys in self._by_key_group(store.keys_changed(log), registered.layout).items():
                entries = store.delta_entries(keys, log)
                if any(entries):
                    sections.append(self._section(name, registered.layout, group, entries))
        sections += self.event_timers.delta_sections()
        sections += self.processing_timers.delta_sections()
        return sections

    def full_sections(self) -> Iterator[Section]:
        for name, registered in self._states.items():
            store = registered.store
            keep = None if registered.policy is None else registered.policy.alive
            for group, keys in self._by_key_group(store.keys_stored(), registered.layout).items():
                entries = store.full_entries(keys, keep)
                if any(entries):
                    yield self._section(name, registered.layout, group, entries)
        yield from self.event_timers.full_sections()
        yield from self.processing_timers.full_sections()

    def load_section(self, section: Section) -> None:
        if section.uid != self.uid or section.key_group not in self.key_groups:
            raise StateError(
                f"operator '{self.uid}' with key groups {self.key_groups.start}-{self.key_groups.stop - 1} was given "
                f"state of operator '{section.uid}', key group {section.key_group}"
            )
        if section.kind == EVENT_TIMERS:
            self.event_timers.load_section(section)
        elif section.kind == PROCESSING_TIMERS:
            self.processing_timers.load_section(section)
        elif section.kind == KEYED:
            self._load_keyed(section)
        else:
            raise StateError(f"operator '{self.uid}': a keyed backend cannot load a section of kind '{section.kind}'")

    def _load_keyed(self, section: Section) -> None:
        decoded = codec.decode_evolved(section.payload, section.uid, section.name)
        layout = StateLayout(*decoded.layout)
        registered = self._registered(section.name, layout)
        refuse_changed_keys(self.uid, section.name, layout.kind, decoded.entries, decoded.changes)
        registered.form.loaded(layout, decoded.changes)
        registered.store.load_entries(decoded.entries)

    def committed_value(self, state_name: str, key: Any, namespace: Any = None) -> Any:
        registered = self._known(state_name)
        with self._boundary:
            found = registered.store.committed((key, namespace) if registered.layout.namespaced else key)
        if found is ABSENT:
            return None
        if registered.layout.ttl:
            found = _unstamped(found, registered)
        if found is not None and isinstance(registered.descriptor, AggregatingStateDescriptor):
            return registered.descriptor.get_agg_function().get_result(found)
        return found

    def number_of_entries(self) -> int:
        return sum(len(registered.store.keys_stored()) for registered in self._states.values())

    def clear_current_key(self) -> None:
        namespace = self.current_namespace
        for registered in self._states.values():
            store = registered.store
            if registered.layout.namespaced:
                for pair in [pair for pair in store.keys_stored() if pair[0] == self.current_key]:
                    self._namespace_scope.current_key = pair
                    store.clear()
            else:
                store.clear()
        self.current_namespace = namespace

    def keys(self, state_name: str) -> list[Any]:
        registered = self._known(state_name)
        stored = registered.store.keys_stored()
        return list(dict.fromkeys(pair[0] for pair in stored)) if registered.layout.namespaced else list(stored)

    def state_names(self) -> list[str]:
        return list(self._states)

    def _known(self, state_name: str) -> _Registered:
        registered = self._states.get(state_name)
        if registered is None:
            names = ", ".join(sorted(self._states)) or "none"
            raise StateError(f"operator '{self.uid}' has no state '{state_name}'; it has: {names}")
        return registered

    def _by_key_group(self, keys: Iterable[Any], layout: StateLayout) -> dict[int, list[Any]]:
        """{key group: keys}, in the order of the groups. Only here is a key group computed: never per record."""
        if not layout.namespaced:
            return by_key_group(keys, self.max_parallelism)
        pairs_of_key: dict[Any, list[Any]] = {}
        for pair in keys:
            pairs_of_key.setdefault(pair[0], []).append(pair)
        groups = by_key_group(pairs_of_key, self.max_parallelism)
        return {group: [pair for key in members for pair in pairs_of_key[key]] for group, members in groups.items()}

    def _section(self, name: str, layout: StateLayout, group: int, entries: tuple[Any, ...]) -> Section:
        return Section(self.uid, KEYED, name, group, codec.encode(tuple(layout), entries, self.uid, name))

    def _clean_up(self, registered: _Registered) -> None:
        """Look at the next few keys of a state with TTL and remove what has expired, as part of the epoch."""
        policy, state, store = registered.policy, registered.expiring, registered.store
        if policy is None or state is None or not store.table:
            return
        number = policy.number_to_examine(len(store.undo))
        scope: KeyScope = self._namespace_scope if registered.layout.namespaced else self
        current_key, current_namespace = self.current_key, self.current_namespace
        keys = list(islice(registered.to_examine, number))
        if len(keys) < number:  # the round is over; the next one begins with the keys as they are now
            registered.to_examine = iter(list(store.table))
        for key in keys:
            scope.current_key = key
            state.purge()
        self.current_key, self.current_namespace = current_key, current_namespace


def _unstamped(found: Any, registered: _Registered) -> Any:
    """A committed value without its expiry dates; None if it has expired."""
    policy = registered.policy
    if isinstance(registered.store, HeapValueState):
        return found[0] if policy is None or policy.alive(found) else None
    if isinstance(registered.store, HeapListState):
        return [entry[0] for entry in found if policy is None or policy.alive(entry)]
    return {key: entry[0] for key, entry in found.items() if policy is None or policy.alive(entry)}
