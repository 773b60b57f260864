"""Keyed state in RocksDB: on the local disk, with as much of it in memory as is allowed."""

from __future__ import annotations

import shutil
import threading
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.common.errors import StateError
from headwater.state import payload as codec
from headwater.state.api import State
from headwater.state.descriptors import AggregatingStateDescriptor, ReducingStateDescriptor, StateDescriptor
from headwater.state.folding import FoldingAggregatingState, FoldingReducingState
from headwater.state.heap_store import ABSENT, KeyScope
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.layout import StateLayout
from headwater.state.migration import Convert, refuse_changed_keys
from headwater.state.panes import ElementPanes, FoldedPanes
from headwater.state.rocksdb_database import Changes, Database, take_over
from headwater.state.rocksdb_facts import Facts, store_timers, timer_sections
from headwater.state.rocksdb_list import RocksListState
from headwater.state.rocksdb_native import native_facts, read_native_sections
from headwater.state.rocksdb_options import RocksDBOptions
from headwater.state.rocksdb_panes import RocksElementPanes, RocksFoldedPanes
from headwater.state.rocksdb_store import RocksStore
from headwater.state.rocksdb_stores import STORES
from headwater.state.rocksdb_value import RocksValueState
from headwater.state.section import EVENT_TIMERS, KEYED, PROCESSING_TIMERS, Section
from headwater.state.stored_form import StoredForm
from headwater.state.ttl import TtlPolicy, TtlState, expiring


@dataclass
class _Registered:
    """One state of the backend. Restored ones have a store only, until their descriptor comes."""

    form: StoredForm
    store: RocksStore
    state_id: int
    state: State | None = None
    descriptor: StateDescriptor | None = None
    policy: TtlPolicy | None = None
    expiring: TtlState | None = None

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


class RocksDBKeyedStateBackend(KeyedStateBackend):
    """State that may be larger than memory. The database holds what committed epochs left, and never anything else.

    What one epoch changes, and timers, are in memory. The process must not fork while the backend is open: RocksDB has
    threads. `close()` removes the working files; so does the end of the process, unless it is killed.
    """

    def __init__(
        self, uid: str, max_parallelism: int, key_groups: range, options: RocksDBOptions | None = None
    ) -> None:
        super().__init__(uid, max_parallelism, key_groups)
        self._options = options or RocksDBOptions()
        self.memory = self._options.memory
        self.log_changes = self._options.log_changes
        self._states: dict[str, _Registered] = {}
        self._namespace_scope = _NamespaceScope(self)
        self._in_epoch = False
        self._damaged = False
        """Whether the database may hold half an epoch."""
        self._converted_in_native: set[str] = set()
        """States whose values were of their present form when the last native checkpoint was made."""
        self._boundary = threading.Lock()
        """Held while the database changes and while a query reads."""
        self._open(self._options.new_directory())

    def _open(self, directory: Path) -> None:
        self.database = Database(directory, self.memory.database_options())
        self._dispose = weakref.finalize(self, _dispose, self.database, directory)

    def close(self) -> None:
        """Give back memory and disk. Nothing may be called any more; calling it again does nothing."""
        if self._dispose.alive:
            with self._boundary:
                self._dispose()
            self._states = {}

    # -- states --------------------------------------------------------------------------------------------------------

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
            state = FoldingReducingState(state, descriptor.get_reduce_function())  # type: ignore[arg-type]
        elif isinstance(descriptor, AggregatingStateDescriptor):
            state = FoldingAggregatingState(state, descriptor.get_agg_function())  # type: ignore[arg-type]
        registered.descriptor = descriptor
        registered.state = state
        return state

    def get_folded_panes(self, name: str) -> FoldedPanes:
        panes = self._panes(name, "folded panes")
        assert isinstance(panes, RocksFoldedPanes)
        return panes

    def get_element_panes(self, name: str) -> ElementPanes:
        panes = self._panes(name, "element panes")
        assert isinstance(panes, RocksElementPanes)
        return panes

    def _panes(self, name: str, kind: str) -> RocksStore:
        registered = self._registered(name, StateLayout(kind, ttl=False, namespaced=True))
        registered.form.asked_for_without_descriptor(self.uid, name)
        return registered.store

    def _registered(self, name: str, layout: StateLayout, state_id: int | None = None) -> _Registered:
        registered = self._states.get(name)
        if registered is None:
            store_class = STORES.get(layout.kind)
            if store_class is None:
                raise StateError(f"state '{name}' of operator '{self.uid}' is of unknown kind '{layout.kind}'")
            if state_id is None:
                state_id = 1 + max((known.state_id for known in self._states.values()), default=0)
            scope: KeyScope = self._namespace_scope if layout.namespaced else self
            store = store_class(self, scope, name, state_id, layout.namespaced)
            registered = self._states[name] = _Registered(StoredForm(layout), store, state_id)
        elif registered.layout.shape != layout.shape:
            raise StateError(
                f"state '{name}' of operator '{self.uid}' is {registered.layout}, but is asked for as {layout}; "
                f"use the same descriptor everywhere, or another name for the new state"
            )
        return registered

    def prefetch(self, keys: Iterable[Any]) -> None:
        """Read the plain values of `keys`, which are about to be used, at a fraction of the cost of one by one."""
        for registered in self._states.values():
            if isinstance(registered.store, RocksValueState) and not registered.layout.namespaced:
                registered.store.prefetch(keys)

    # -- epochs --------------------------------------------------------------------------------------------------------

    def begin_epoch(self) -> None:
        if self._in_epoch:
            raise StateError(f"operator '{self.uid}': an epoch begins before the last one was committed or rolled back")
        if self._damaged:
            raise StateError(
                f"operator '{self.uid}': an earlier epoch was written to RocksDB in part only; "
                f"state must be restored into a new backend"
            )
        self._in_epoch = True

    def commit_epoch(self, *, cut: bool = False) -> None:
        stores = self._stores()
        changes = [store.collect() for store in stores]  # all of them before the first is written: it may raise
        with self._boundary:
            for each in changes:
                self._write(each)
            for store in stores:
                store.committed_now(cut=cut)
            for queue in (self.event_timers, self.processing_timers):
                queue.commit(cut=cut or not self.log_changes)
                if not self.log_changes:
                    queue.checkpoint_completed()
            self._in_epoch = False

    def _write(self, changes: Changes) -> None:
        self._damaged = True
        self.database.write(changes)
        self._damaged = False

    def checkpoint_completed(self) -> None:
        for registered in self._states.values():
            registered.form.checkpoint_completed()
            registered.store.checkpoint_completed()
        self.event_timers.checkpoint_completed()
        self.processing_timers.checkpoint_completed()

    def checkpoint_failed(self) -> None:
        for registered in self._states.values():
            registered.form.checkpoint_failed()
            registered.store.checkpoint_failed()
        self.event_timers.checkpoint_failed()
        self.processing_timers.checkpoint_failed()

    def rewind(self) -> bool:
        """Old values are not kept: the checkpoint has to be loaded."""
        return False

    def rollback_epoch(self) -> None:
        self.rollbacks += 1
        with self._boundary:
            for store in self._stores():
                store.rollback()
            self.event_timers.rollback()
            self.processing_timers.rollback()
            self._in_epoch = False

    def _stores(self) -> list[RocksStore]:
        return [registered.store for registered in self._states.values()]

    # -- sections ------------------------------------------------------------------------------------------------------

    def delta_sections(self, *, on_native: bool = False) -> list[Section]:
        if not self.log_changes:
            raise StateError(
                f"operator '{self.uid}': there is no delta, because changes are not logged; "
                f"take a native checkpoint, or set log_changes=True in RocksDBOptions"
            )
        sections: list[Section] = []
        for name, registered in self._states.items():
            self._clean_up(registered)
            store = registered.store
            log = store.changes()
            if registered.form.delta_is_whole() and not (on_native and name in self._converted_in_native):
                sections += self._full_sections_of(name, registered)
            for group, keys in store.by_key_group(store.keys_changed(log)).items():
                entries = store.delta_entries(keys, log)
                if any(entries):
                    sections.append(self._section(name, registered.layout, group, entries))
        sections += self.event_timers.delta_sections()
        sections += self.processing_timers.delta_sections()
        return sections

    def full_sections(self) -> Iterator[Section]:
        for name, registered in self._states.items():
            yield from self._full_sections_of(name, registered)
        yield from self.event_timers.full_sections()
        yield from self.processing_timers.full_sections()

    def _full_sections_of(self, name: str, registered: _Registered) -> Iterator[Section]:
        keep = None if registered.policy is None else registered.policy.alive
        for group in self.key_groups:
            for entries in registered.store.full_entries(group, keep):
                if any(entries):
                    yield self._section(name, registered.layout, group, entries)

    def _section(self, name: str, layout: StateLayout, group: int, entries: tuple[Any, ...]) -> Section:
        return Section(self.uid, KEYED, name, group, codec.encode(tuple(layout), entries, self.uid, name))

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
        self._load_entries(registered.store, decoded.entries)

    def _load_entries(self, store: RocksStore, entries: tuple[Any, ...]) -> None:
        with self._boundary:
            self._write(store.load_entries(entries))
            store.loaded()

    def _convert(self, registered: _Registered, convert: Convert) -> None:
        """Replace each value by what `convert` makes of it, before its first use."""
        store, layout = registered.store, registered.layout
        one: Convert = (lambda pair: (convert(pair[0]), *pair[1:])) if layout.ttl else convert
        store.pickler.start_over()
        for group in self.key_groups:
            for entries in store.full_entries(group, None):
                columns = list(entries)
                if layout.kind == "list":
                    columns[2] = [[one(element) for element in elements] for elements in columns[2]]
                elif layout.kind == "map":
                    columns[1] = [{key: one(value) for key, value in each.items()} for each in columns[1]]
                else:
                    columns[1] = [one(value) for value in columns[1]]
                self._load_entries(store, tuple(columns))

    # -- native checkpoints --------------------------------------------------------------------------------------------

    def native_checkpoint(self, directory: Path) -> None:
        """Make `directory`, which must not exist, a copy of what the last committed epoch left, timers included.

        Called between epochs. Files that an earlier native checkpoint has too are links to the same file, and have the
        same name. The copy is complete when this returns; its files never change and belong to the caller.
        """
        if self._in_epoch:
            raise StateError(f"operator '{self.uid}': a native checkpoint can be made between two epochs only")
        self._converted_in_native = {name for name, known in self._states.items() if known.form.converted}
        facts = Facts(
            self.uid,
            self.max_parallelism,
            (self.key_groups.start, self.key_groups.stop),
            {name: (known.state_id, tuple(known.layout)) for name, known in self._states.items()},
            {name: classes for name, known in self._states.items() if (classes := known.store.pickler.classes())},
            any(known.store.pickler.has_stored_records for known in self._states.values()),
        )
        with self._boundary:
            self.database.set_facts(facts.to_dict())
            store_timers(self.database, [*self.event_timers.full_sections(), *self.processing_timers.full_sections()])
            self.database.checkpoint(directory)

    @property
    def local_directory(self) -> Path | None:
        return self._options.directory

    def new_native_checkpoint(self) -> Path:
        directory = self._options.new_directory()
        directory.rmdir()  # its name is taken, and RocksDB wants to make it
        try:
            self.native_checkpoint(directory)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        return directory

    def load_native(self, directory: Path) -> bool:
        """Restore what `native_checkpoint` made; before the first use of any state.

        True: the database goes on with the very files of the checkpoint. False: they are of other key groups, or of
        classes that have changed since, so the entries were loaded one by one.
        """
        if self._states:
            raise StateError(f"operator '{self.uid}' has state already; a native checkpoint is loaded before anything")
        facts = native_facts(directory)
        if facts.max_parallelism != self.max_parallelism:
            raise StateError(
                f"the native checkpoint in {directory} has {facts.max_parallelism} key groups, but operator "
                f"'{self.uid}' has {self.max_parallelism}; the number is fixed, set the maximum parallelism back"
            )
        if not facts.fits(self.key_groups, self.max_parallelism):
            for section in read_native_sections(directory, self.uid, self.key_groups):
                self.load_section(section)
            return False
        path = self._options.new_directory()
        take_over(directory, path)
        with self._boundary:
            self._dispose()
            self._open(path)
        for name, (state_id, layout) in facts.states.items():
            store = self._registered(name, StateLayout(*layout), state_id).store
            store.loaded()
            store.pickler.loaded(facts.classes.get(name, ()))
        for section in timer_sections(self.database, self.uid):
            self.load_section(section)
        return True

    # -- all keys ------------------------------------------------------------------------------------------------------

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
        return sum(store.count() for store in self._stores())

    def clear_current_key(self) -> None:
        namespace = self.current_namespace
        for registered in self._states.values():
            store = registered.store
            if registered.layout.namespaced:
                for pair in store.pairs_of(self.current_key):
                    self._namespace_scope.current_key = pair
                    store.clear()
            else:
                store.clear()
        self.current_namespace = namespace

    def keys(self, state_name: str) -> list[Any]:
        registered = self._known(state_name)
        stored = registered.store.keys_stored()
        return list(dict.fromkeys(pair[0] for pair in stored)) if registered.layout.namespaced else stored

    def state_names(self) -> list[str]:
        return list(self._states)

    def _known(self, state_name: str) -> _Registered:
        registered = self._states.get(state_name)
        if registered is None:
            names = ", ".join(sorted(self._states)) or "none"
            raise StateError(f"operator '{self.uid}' has no state '{state_name}'; it has: {names}")
        return registered

    def _clean_up(self, registered: _Registered) -> None:
        """Look at the next few keys of a state with TTL and remove what has expired, as part of the epoch."""
        policy, state, store = registered.policy, registered.expiring, registered.store
        if policy is None or state is None:
            return
        scope: KeyScope = self._namespace_scope if registered.layout.namespaced else self
        current_key, current_namespace = self.current_key, self.current_namespace
        for key in store.next_keys(policy.number_to_examine(len(store.changed))):
            scope.current_key = key
            state.purge()
        self.current_key, self.current_namespace = current_key, current_namespace


def _dispose(database: Database, directory: Path) -> None:
    database.close()
    shutil.rmtree(directory, ignore_errors=True)


def _unstamped(found: Any, registered: _Registered) -> Any:
    """A committed value without its expiry dates; None if it has expired."""
    policy = registered.policy
    if isinstance(registered.store, RocksValueState):
        return found[0] if policy is None or policy.alive(found) else None
    if isinstance(registered.store, RocksListState):
        return [entry[0] for entry in found if policy is None or policy.alive(entry)]
    return {key: entry[0] for key, entry in found.items() if policy is None or policy.alive(entry)}
