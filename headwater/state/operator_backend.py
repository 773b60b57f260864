"""State of one operator partition that belongs to no key: lists, stored whole or as appends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.common.errors import StateError
from headwater.state import payload as codec
from headwater.state.api import ListState
from headwater.state.descriptors import ListStateDescriptor
from headwater.state.heap_list import HeapListState
from headwater.state.heap_store import ABSENT
from headwater.state.section import NO_KEY_GROUP, OPERATOR, Section

_LAYOUT = ("operator-list",)
_KEY = None
"""The one key under which each list is stored."""


class _SingleScope:
    """All lists are about the same "key"."""

    current_key: Any = _KEY


class OperatorStateBackend:
    """Non-keyed state of one operator (`uid`) in one partition. The life in epochs is that of a keyed backend.

    What is changed before the first epoch (`initialize_state`, `open`) is kept when that epoch is rolled back: these
    calls are not repeated.
    """

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self._scope = _SingleScope()
        self._lists: dict[str, HeapListState] = {}
        self._changed_before_epoch: set[str] = set()

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """The list state of that name. The same object for the same name."""
        if not isinstance(state_descriptor, ListStateDescriptor):
            raise StateError(
                f"operator '{self.uid}': operator list state needs a ListStateDescriptor, found {state_descriptor!r}"
            )
        if state_descriptor.get_ttl_config() is not None:
            raise StateError(
                f"state '{state_descriptor.name}' of operator '{self.uid}': only keyed state can have a TTL"
            )
        return self._list(state_descriptor.name)

    def _list(self, name: str) -> HeapListState:
        state = self._lists.get(name)
        if state is None:
            state = self._lists[name] = HeapListState(self._scope)
        return state

    def begin_epoch(self) -> None:
        """An epoch begins. What was changed since the last commit stays changed, and is part of the next delta."""
        for name, state in self._lists.items():
            if state.undo:
                state.commit()
                self._changed_before_epoch.add(name)

    def commit_epoch(self) -> None:
        """What the epoch changed is final."""
        for state in self._lists.values():
            state.commit()
        self._changed_before_epoch.clear()

    def rollback_epoch(self) -> None:
        """Take back what changed since the epoch began."""
        for state in self._lists.values():
            state.rollback()

    def delta_sections(self) -> list[Section]:
        """What changed since the last commit."""
        sections: list[Section] = []
        for name, state in self._lists.items():
            if name in self._changed_before_epoch:
                whole = state.full_entries(state.table, None)
                sections.append(self._section(name, whole if any(whole) else ([], [], [], [_KEY])))
            elif state.undo and any(entries := state.delta_entries(state.undo)):
                sections.append(self._section(name, entries))
        return sections

    def full_sections(self) -> Iterator[Section]:
        """All that is there now."""
        for name, state in self._lists.items():
            if state.table:
                yield self._section(name, state.full_entries(state.table, None))

    def load_section(self, section: Section) -> None:
        """Restore a section; a full snapshot's first, then those of its deltas."""
        layout, entries = codec.decode(section.payload, section.uid, section.name)
        if section.uid != self.uid or layout != _LAYOUT:
            raise StateError(
                f"operator '{self.uid}' was given state '{section.name}' of operator '{section.uid}', {layout!r}, "
                f"as its list state"
            )
        self._list(section.name).load_entries(entries)

    def committed_list(self, state_name: str) -> list[Any]:
        """What the last commit says; [] if there is nothing. May be called from another thread."""
        state = self._lists.get(state_name)
        found: Any = ABSENT if state is None else state.committed(_KEY)
        return [] if found is ABSENT else list(found)

    def number_of_entries(self) -> int:
        """How many elements are stored, summed over the lists."""
        return sum(len(elements) for state in self._lists.values() for elements in state.table.values())

    def _section(self, name: str, entries: tuple[Any, ...]) -> Section:
        data = codec.encode(_LAYOUT, entries, self.uid, name)
        return Section(self.uid, OPERATOR, name, NO_KEY_GROUP, data)
