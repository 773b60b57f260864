"""List state on the heap. Appending to a list of a million elements logs and writes one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headwater.state.api import ListState
from headwater.state.change_log import Combine, Join
from headwater.state.copying import ATOMIC, are_immutable, protective_copy
from headwater.state.heap.store import ABSENT, UNCHANGED, HeapStore
from headwater.state.snapshot.entries import ListEntries, check_base


class HeapListState(HeapStore, ListState[Any]):
    """{key: [element, ...]}, never an empty list.

    The undo log has the length before (int) if elements were only appended; otherwise the whole list before (list), or
    ABSENT.
    """

    __slots__ = ()

    def get(self) -> list[Any]:
        elements = self.table.get(self._scope.current_key)
        if elements is None:
            return []
        return protective_copy(elements) if self.holds_mutable else elements[:]  # type: ignore[no-any-return]

    def add(self, value: Any) -> None:
        key = self._scope.current_key
        elements = self.table.get(key)
        if value.__class__ not in ATOMIC:
            value = self.owned(value)
        if elements is not None:
            if key not in self.undo:
                self.undo[key] = len(elements)
            elements.append(value)
        else:
            if key not in self.undo:
                self.undo[key] = ABSENT
            self.table[key] = [value]

    def add_all(self, values: Iterable[Any]) -> None:
        for value in values:
            self.add(value)

    def update(self, values: Iterable[Any]) -> None:
        elements = list(map(self.owned, values))
        key = self._scope.current_key
        self._keep_whole(key)
        if elements:
            self.table[key] = elements
        else:
            self.table.pop(key, None)

    def clear(self) -> None:
        self.update(())

    def peek(self) -> list[Any]:
        """Return the live list. The caller must not change it, nor hand it to a user."""
        elements: list[Any] | None = self.table.get(self._scope.current_key)
        return [] if elements is None else elements

    def _keep_whole(self, key: Any) -> None:
        """Put the whole list before into the undo log. Call it before any change that is not an append."""
        before = self.undo.get(key, UNCHANGED)
        if before is UNCHANGED:
            self.undo[key] = self.table.get(key, ABSENT)
        elif before.__class__ is int:
            self.undo[key] = self.table[key][:before]

    def rollback(self) -> None:
        table = self.table
        for key, before in self.undo.items():
            if before is ABSENT:
                table.pop(key, None)
            elif before.__class__ is int:
                del table[key][before:]
            else:
                table[key] = before
        self.undo, self._spanning = {}, None

    def _combination(self) -> Combine:
        return older_length

    def current(self, key: Any) -> Any:
        elements = self.table.get(key, ABSENT)
        # Copied before anybody reads the undo log: an append in between would look committed.
        return elements if elements is ABSENT else elements[:]

    def before(self, key: Any, entry: Any, log: dict[Any, Any]) -> Any:
        before = log.get(key, UNCHANGED)
        if before is UNCHANGED:
            return entry
        return entry[:before] if before.__class__ is int else before

    def delta_entries(self, keys: Iterable[Any], log: dict[Any, Any]) -> ListEntries:
        table = self.table
        present: list[Any] = []
        bases: list[int] = []
        added: list[list[Any]] = []
        deleted: list[Any] = []
        for key in keys:
            before = log[key]
            elements = table.get(key)
            if elements is None:
                if before is not ABSENT:
                    deleted.append(key)
                continue
            base = before if before.__class__ is int else 0
            present.append(key)
            bases.append(base)
            added.append(elements[base:] if base else elements)
        return ListEntries(present, bases, added, deleted)

    def written(self, keys: list[Any]) -> tuple[list[Any], ...]:
        owners: list[Any] = []
        elements: list[Any] = []
        for key in keys:
            before = self.undo[key]
            added = self.table.get(key, [])[before if before.__class__ is int else 0 :]
            owners += [key] * len(added)
            elements += added
        return owners, elements

    def full_entries(self, keys: Iterable[Any]) -> ListEntries:
        present = list(keys)
        return ListEntries.of_lists(present, list(map(self.table.__getitem__, present)))

    def load_entries(self, entries: ListEntries) -> None:
        for key, base, elements in entries.rows():
            self.holds_mutable = self.holds_mutable or not are_immutable(elements)
            if base == 0:
                self.table[key] = elements
                continue
            known = self.table.get(key, [])
            check_base(base, len(known), "a list")
            known[base:] = elements
        for key in entries.deleted:
            self.table.pop(key, None)


def older_length(key: Any, older: Any, newer: Any, join: Join) -> Any:
    """Join two log entries of a list. Each is the length before (int), the list before, or ABSENT."""
    return newer[:older] if older.__class__ is int and newer.__class__ is list else older
