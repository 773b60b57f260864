"""State of one operator partition that belongs to no key: lists, and maps that are the same in every partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

from headwater.common.errors import StateError, TypeMismatchError
from headwater.state.api import BroadcastState, ListState, ReadOnlyBroadcastState
from headwater.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from headwater.state.evolution.changed_classes import ClassChange
from headwater.state.evolution.stored_form import StoredForm
from headwater.state.heap.broadcast import HeapBroadcastState, ReadOnlyHeapBroadcastState
from headwater.state.heap.list import HeapListState
from headwater.state.heap.store import ABSENT, HeapStore
from headwater.state.snapshot import payload as codec
from headwater.state.snapshot.entries import Entries, ListEntries
from headwater.state.snapshot.layout import StateLayout
from headwater.state.snapshot.section import BROADCAST, NO_KEY_GROUP, OPERATOR, Section
from headwater.state.type_check import StateTypeCheck

_LAYOUTS = {OPERATOR: StateLayout("list", False, False), BROADCAST: StateLayout("map", False, False)}
_WORDS = {OPERATOR: "a list state", BROADCAST: "a broadcast state"}
_KEY = None
"""Each list or map is stored under this key."""

_Store = HeapListState | HeapBroadcastState


class _Held(NamedTuple):
    """One state, with what the backend knows about it."""

    kind: str  # of its sections
    store: _Store
    form: StoredForm


class _SingleScope:
    """Gives all states the same "key"."""

    current_key: Any = _KEY


class OperatorStateBackend:
    """Non-keyed state of one operator (`uid`) in one partition. It lives in epochs like a keyed backend.

    Rolling back the first epoch keeps changes made before it, in `initialize_state` and `open`: these calls are not
    repeated.
    """

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self._scope = _SingleScope()
        self._stores: dict[str, _Held] = {}
        self._asked_for: set[str] = set()
        self._checks: dict[str, StateTypeCheck] = {}
        self._misfit: TypeMismatchError | None = None
        """Raised at the end of the epoch: `open` stored a value that does not fit its declared type."""
        self._opened_dirty = False
        """State changed outside of epochs since the last checkpoint, so going back to it needs new functions."""

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return the list state of that name. The same name gives the same object."""
        self._check(state_descriptor, ListStateDescriptor, "operator list state")
        return cast(HeapListState, self._asked(state_descriptor, OPERATOR))

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """Return the broadcast state of that name. The same name gives the same object.

        Every partition must make the same changes to it: after a restore, a partition may get another one's.
        """
        self._check(state_descriptor, MapStateDescriptor, "broadcast state")
        return cast(HeapBroadcastState, self._asked(state_descriptor, BROADCAST))

    def get_read_only_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        """Return the broadcast state of that name, for callers that must not change it."""
        self._check(state_descriptor, MapStateDescriptor, "broadcast state")
        state = cast(HeapBroadcastState, self._asked(state_descriptor, BROADCAST))
        return ReadOnlyHeapBroadcastState(state_descriptor.name, state)

    def begin_epoch(self) -> None:
        """Begin an epoch. Changes since the last commit stay when it is rolled back, and go into the next delta."""
        if any(held.store.undo for held in self._stores.values()):
            self._opened_dirty = True
            try:
                self.check_types()
            except TypeMismatchError as error:
                self._misfit = error
            for _, store, _ in self._stores.values():
                if store.undo:
                    store.commit()

    def check_types(self) -> None:
        """Raise `TypeMismatchError` if a value that the epoch or `open` wrote does not fit its declared type."""
        if self._misfit is not None:
            raise self._misfit
        for name, check in self._checks.items():
            check.check(self._stores[name].store)

    def commit_epoch(self, *, cut: bool = False) -> None:
        """Make the epoch's changes final. With `cut`, a checkpoint ends with this epoch and is now in flight."""
        for _, store, _ in self._stores.values():
            store.commit(cut=cut)

    def checkpoint_completed(self) -> None:
        """The checkpoint in flight is durable."""
        self._opened_dirty = False
        for _, store, form in self._stores.values():
            store.checkpoint_completed()
            form.checkpoint_completed()

    def checkpoint_failed(self) -> None:
        """The checkpoint in flight failed: the next delta must contain its changes too."""
        for _, store, form in self._stores.values():
            store.checkpoint_failed()
            form.checkpoint_failed()

    def rewind(self) -> bool:
        """Go back to the last durable checkpoint. Return False if that undoes what `open` did, which runs only once."""
        for _, store, form in self._stores.values():
            store.rewind()
            form.checkpoint_failed()
        return not self._opened_dirty

    def rollback_epoch(self) -> None:
        """Undo all changes since the epoch began."""
        for _, store, _ in self._stores.values():
            store.rollback()

    def delta_sections(self) -> list[Section]:
        """Return what changed since the last checkpoint."""
        sections: list[Section] = []
        for name, (_, store, form) in self._stores.items():
            log = store.changes()
            if form.delta_is_whole():
                log = {**log, **dict.fromkeys(store.table, ABSENT)}
            if log and (entries := store.delta_entries(log, log)):
                sections.append(self._section(name, entries))
        return sections

    def full_sections(self) -> Iterator[Section]:
        """Yield the whole state."""
        for name, (_, store, _) in self._stores.items():
            if store.table:
                yield self._section(name, store.full_entries(store.table))

    def load_section(self, section: Section) -> None:
        """Restore one section. The caller loads a full snapshot first, then its deltas.

        It may load the chains of several old partitions one after the other: each contains the whole broadcast state.
        """
        layout, entries, changes = codec.decode(section.payload, section.uid, section.name)
        expected = _LAYOUTS.get(section.kind)
        if section.uid != self.uid or expected is None or layout.shape != expected.shape:
            raise StateError(
                f"operator '{self.uid}' was given state '{section.name}' of operator '{section.uid}', {layout}, "
                f"as operator state of kind '{section.kind}'"
            )
        self._load(section.name, section.kind, layout, entries, changes)

    def lists(self) -> dict[str, tuple[StateLayout, list[Any]]]:
        """Return {name: (layout of the elements, elements)} of the list states, unconverted. For tools."""
        held = {name: held for name, held in self._stores.items() if held.kind == OPERATOR}
        return {name: (each.form.layout, self.committed_list(name)) for name, each in held.items()}

    def put_list(self, name: str, layout: StateLayout, elements: list[Any]) -> None:
        """Store `elements`, which have the layout `layout`, as if a section was loaded. For tools."""
        self._load(name, OPERATOR, layout, ListEntries.of_lists([_KEY], [elements]))

    def committed_list(self, state_name: str) -> list[Any]:
        """Return the elements as of the last commit; [] if there are none. Any thread may call this."""
        found = self._committed(state_name)
        return [] if found is ABSENT else list(found)

    def committed_broadcast(self, state_name: str) -> dict[Any, Any]:
        """Return the map as of the last commit; {} if there is none. Any thread may call this."""
        found = self._committed(state_name)
        return {} if found is ABSENT else dict(found)

    def number_of_entries(self) -> int:
        """Return the number of elements in all lists and maps."""
        return sum(len(elements) for _, store, _ in self._stores.values() for elements in store.table.values())

    def _load(
        self, name: str, kind: str, layout: StateLayout, entries: Entries, changes: Iterable[ClassChange] = ()
    ) -> None:
        held = self._held(name, kind)
        held.form.loaded(layout, changes)
        store: HeapStore = held.store
        store.load_entries(entries)

    def _committed(self, state_name: str) -> Any:
        known = self._stores.get(state_name)
        return ABSENT if known is None else known.store.committed(_KEY)

    def _asked(self, descriptor: StateDescriptor, kind: str) -> _Store:
        held = self._held(descriptor.name, kind)
        if descriptor.name not in self._asked_for:
            convert = held.form.asked_for(self.uid, descriptor, StateLayout.of(descriptor))
            if convert is not None:
                held.store.convert(convert)
            self._asked_for.add(descriptor.name)
            check = StateTypeCheck.of(descriptor, keyed=False)
            if check is not None:
                self._checks[descriptor.name] = check
        return held.store

    def _held(self, name: str, kind: str) -> _Held:
        held = self._stores.get(name)
        if held is None:
            store: _Store = HeapListState(self._scope) if kind == OPERATOR else HeapBroadcastState(self._scope)
            held = self._stores[name] = _Held(kind, store, StoredForm(_LAYOUTS[kind]))
        elif held.kind != kind:
            raise StateError(
                f"state '{name}' of operator '{self.uid}' is {_WORDS[held.kind]}, but is asked for as {_WORDS[kind]}; "
                "use another name for the new one"
            )
        return held

    def _check(self, descriptor: StateDescriptor, expected: type[StateDescriptor], what: str) -> None:
        if not isinstance(descriptor, expected):
            raise StateError(f"operator '{self.uid}': {what} needs a {expected.__name__}, found {descriptor!r}")
        if descriptor.get_ttl_config() is not None:
            raise StateError(f"state '{descriptor.name}' of operator '{self.uid}': only keyed state can have a TTL")

    def _section(self, name: str, entries: Entries) -> Section:
        kind, _, form = self._stores[name]
        return Section(self.uid, kind, name, NO_KEY_GROUP, codec.encode(form.layout, entries, self.uid, name))
