"""The common part of keyed backends with one store per state: names, shapes, descriptors, sections."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, cast

from headwater.common.errors import StateError
from headwater.state.api import State
from headwater.state.descriptors import AggregatingStateDescriptor, ReducingStateDescriptor, StateDescriptor
from headwater.state.evolution.migration import Convert, refuse_changed_keys, refuse_moved_keys
from headwater.state.evolution.stored_form import StoredForm
from headwater.state.folding import FoldingAggregatingState, FoldingReducingState
from headwater.state.heap.store import KeyScope
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.panes import ElementPanes, FoldedPanes
from headwater.state.readable_backend import ReadableBackend
from headwater.state.registered import Registered, S
from headwater.state.snapshot import payload as codec
from headwater.state.snapshot.entries import Entries
from headwater.state.snapshot.layout import StateLayout
from headwater.state.snapshot.section import EVENT_TIMERS, KEYED, PROCESSING_TIMERS, Section
from headwater.state.ttl.expiring import TtlPolicy, expiring
from headwater.state.type_check import StateTypeCheck, WrittenStore


class _NamespaceScope:
    """Makes (key, namespace) the key of a namespaced state. Plain states use the backend itself, which is faster."""

    __slots__ = ("_backend",)

    def __init__(self, backend: KeyedStateBackend) -> None:
        self._backend = backend

    @property
    def current_key(self) -> Any:
        return (self._backend.current_key, self._backend.current_namespace)

    @current_key.setter
    def current_key(self, pair: tuple[Any, Any]) -> None:
        self._backend.current_key, self._backend.current_namespace = pair


class StoreBackend(ReadableBackend[S]):
    """A keyed backend with one store per state. Subclasses define the stores, the epochs and the snapshots."""

    def __init__(self, uid: str, max_parallelism: int, key_groups: range) -> None:
        super().__init__(uid, max_parallelism, key_groups)
        self._namespace_scope = _NamespaceScope(self)
        self._in_epoch = False

    # --- for subclasses

    @abstractmethod
    def _new_store(self, name: str, layout: StateLayout) -> S | None:
        """Return an empty store for such a state; None if the kind is unknown."""

    @abstractmethod
    def _convert(self, registered: Registered[S], convert: Convert) -> None:
        """Replace each value by `convert(value)`. Called before the first use of the state."""

    @abstractmethod
    def _load_entries(self, store: S, entries: Entries) -> None:
        """Apply the entries of one section."""

    @abstractmethod
    def _full_entries(self, registered: Registered[S]) -> Iterator[tuple[int, Entries]]:
        """Yield (key group, entries) of the whole of one state. A key group may come in several pieces."""

    @abstractmethod
    def _pairs_of(self, store: S, key: Any) -> Iterable[Any]:
        """Return the (key, namespace) pairs of `key` in a namespaced store."""

    @abstractmethod
    def _keys_to_examine(self, registered: Registered[S], policy: TtlPolicy) -> Iterable[Any]:
        """Return the next few keys of a state with TTL to examine for expired entries."""

    # --- states

    def _get_state(self, descriptor: StateDescriptor, namespaced: bool) -> State:
        ttl_config = descriptor.get_ttl_config()
        layout = StateLayout.of(descriptor, namespaced)
        registered = self._registered(descriptor.name, layout)
        if registered.state is not None:
            return registered.state
        convert = registered.form.asked_for(self.uid, descriptor, layout)
        if convert is not None:
            self._convert(registered, convert)
        plain = registered.store
        assert isinstance(plain, State)
        state: State = plain
        if ttl_config is not None:
            registered.policy = TtlPolicy(ttl_config, self)
            state = registered.expiring = expiring(plain, registered.policy)
        if isinstance(descriptor, ReducingStateDescriptor):
            state = FoldingReducingState(state, descriptor.get_reduce_function())
        elif isinstance(descriptor, AggregatingStateDescriptor):
            state = FoldingAggregatingState(state, descriptor.get_agg_function())
        registered.descriptor = descriptor
        registered.type_check = StateTypeCheck.of(descriptor, keyed=True)
        registered.state = state
        return state

    def get_folded_panes(self, name: str) -> FoldedPanes:
        return cast(FoldedPanes, self._panes(name, "folded panes"))

    def get_element_panes(self, name: str) -> ElementPanes:
        return cast(ElementPanes, self._panes(name, "element panes"))

    def _panes(self, name: str, kind: str) -> S:
        registered = self._registered(name, StateLayout(kind, ttl=False, namespaced=True))
        registered.form.asked_for_without_descriptor(self.uid, name)
        return registered.store

    def _registered(self, name: str, layout: StateLayout) -> Registered[S]:
        registered = self._states.get(name)
        if registered is None:
            store = self._new_store(name, layout)
            if store is None:
                raise StateError(f"state '{name}' of operator '{self.uid}' is of unknown kind '{layout.kind}'")
            registered = self._states[name] = Registered(StoredForm(layout), store)
        elif registered.layout.shape != layout.shape:
            raise StateError(
                f"state '{name}' of operator '{self.uid}' is {registered.layout}, but is asked for as {layout}; "
                f"use the same descriptor everywhere, or another name for the new state"
            )
        return registered

    def _scope(self, layout: StateLayout) -> KeyScope:
        return self._namespace_scope if layout.namespaced else self

    def state_names(self) -> list[str]:
        return list(self._states)

    def keys(self, state_name: str) -> list[Any]:
        registered = self._known(state_name)
        stored = registered.store.keys_stored()
        return list(dict.fromkeys(pair[0] for pair in stored)) if registered.layout.namespaced else list(stored)

    def clear_current_key(self) -> None:
        namespace = self.current_namespace
        for registered in self._states.values():
            store = registered.store
            if registered.layout.namespaced:
                for pair in self._pairs_of(store, self.current_key):
                    self._namespace_scope.current_key = pair
                    store.clear()
            else:
                store.clear()
        self.current_namespace = namespace

    # --- epochs

    def begin_epoch(self) -> None:
        if self._in_epoch:
            raise StateError(f"operator '{self.uid}': an epoch begins before the last one was committed or rolled back")
        self._in_epoch = True

    def check_types(self) -> None:
        for registered in self._states.values():
            if registered.type_check is not None:
                registered.type_check.check(cast(WrittenStore, registered.store))

    def checkpoint_completed(self) -> None:
        with self._boundary:
            keep_as, join = self._settle_cut()
            for registered in self._states.values():
                registered.form.checkpoint_completed()
                registered.store.checkpoint_completed(keep_as, join=join)
        self.event_timers.checkpoint_completed()
        self.processing_timers.checkpoint_completed()

    def checkpoint_failed(self) -> None:
        with self._boundary:
            for registered in self._states.values():
                registered.form.checkpoint_failed()
                registered.store.checkpoint_failed()
        self.event_timers.checkpoint_failed()
        self.processing_timers.checkpoint_failed()

    # --- sections

    def full_sections(self) -> Iterator[Section]:
        for name, registered in self._states.items():
            yield from self._full_sections_of(name, registered)
        yield from self.event_timers.full_sections()
        yield from self.processing_timers.full_sections()

    def _full_sections_of(self, name: str, registered: Registered[S]) -> Iterator[Section]:
        """Yield the whole of one state, except expired entries."""
        for group, entries in self._full_entries(registered):
            if registered.policy is not None:
                entries = entries.only(registered.policy.alive)
            if entries:
                yield self._section(name, registered.layout, group, entries)

    def _section(self, name: str, layout: StateLayout, group: int, entries: Entries) -> Section:
        return Section(self.uid, KEYED, name, group, codec.encode(layout, entries, self.uid, name))

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
        layout, entries, changes = codec.decode(section.payload, section.uid, section.name)
        registered = self._registered(section.name, layout)
        refuse_changed_keys(self.uid, section.name, entries, changes)
        refuse_moved_keys(section, layout, entries, self.max_parallelism)
        registered.form.loaded(layout, changes)
        self._load_entries(registered.store, entries)

    # --- expired entries

    def _clean_up(self, registered: Registered[S]) -> None:
        """Remove expired entries of the next few keys of a state with TTL, as part of the epoch."""
        if registered.policy is None or registered.expiring is None:
            return
        scope = self._scope(registered.layout)
        current_key, current_namespace = self.current_key, self.current_namespace
        for key in self._keys_to_examine(registered, registered.policy):
            scope.current_key = key
            registered.expiring.purge()
        self.current_key, self.current_namespace = current_key, current_namespace
