"""Value state on the heap. The hottest code of a stateful job: `value()` and `update()` run once or more per record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headwater.state.api import ValueState
from headwater.state.change_log import keep_first
from headwater.state.copying import ATOMIC, are_immutable, is_immutable, protective_copy
from headwater.state.heap.store import ABSENT, UNCHANGED, HeapStore
from headwater.state.snapshot.entries import ValueEntries


class HeapValueState(HeapStore, ValueState[Any]):
    """{key: value}; undo {key: value before, or ABSENT}."""

    __slots__ = ()

    def value(self) -> Any:
        value = self.table.get(self._scope.current_key)
        return protective_copy(value) if self.holds_mutable else value

    def update(self, value: Any, given_away: bool = False) -> None:
        """`given_away`: nobody else holds any part of `value` that can change."""
        key = self._scope.current_key
        if value.__class__ is tuple:
            for part in value:
                if part.__class__ not in ATOMIC:
                    value = self.owned(value, given_away or value is self.table.get(key))
                    break
        elif value.__class__ not in ATOMIC:
            value = self.owned(value, given_away or value is self.table.get(key))
        if key not in self.undo:
            self.undo[key] = self.table.get(key, ABSENT)
        if value is not None:
            self.table[key] = value
        elif self.table.pop(key, None) is not None and self.undo[key] is ABSENT:
            self._note_gone()

    def clear(self) -> None:
        self.update(None)

    def values_of(self, keys: Sequence[Any]) -> list[Any]:
        """The value of each key; see `headwater.state.many_keys`."""
        values = list(map(self.table.get, keys))
        return [protective_copy(value) for value in values] if self.holds_mutable else values

    def update_all(self, keys: Sequence[Any], before: Sequence[Any], values: Sequence[Any]) -> None:
        """Store an immutable value, or None, for each key, which has the value `before`."""
        table = self.table
        self.unshared = True
        if None in before:
            before = [ABSENT if value is None else value for value in before]
        if self.undo:
            keep_first(self.undo, keys, before)
        else:
            self.undo.update(zip(keys, before, strict=True))
        if None not in values:
            table.update(zip(keys, values, strict=True))
            return
        for key, value in zip(keys, values, strict=True):
            if value is not None:
                table[key] = value
            elif table.pop(key, None) is not None and self.undo[key] is ABSENT:
                self._note_gone()

    def peek(self) -> Any:
        """Return the value without counting as a touch. The caller must not change it, nor hand it to a user."""
        return self.table.get(self._scope.current_key)

    def live(self) -> Any:
        """The value itself, for a function that folds: it may change it in place and have it stored with `update`.

        The first call in an epoch leaves the old one behind, untouched.
        """
        key = self._scope.current_key
        value = self.table.get(key)
        if not self.holds_mutable or key in self.undo or is_immutable(value):
            return value
        copied = protective_copy(value)
        self.undo[key] = value
        self.table[key] = copied
        return copied

    def rollback(self) -> None:
        table = self.table
        for key, before in self.undo.items():
            if before is ABSENT:
                table.pop(key, None)
            else:
                table[key] = before
        self.undo, self._spanning = {}, None

    def current(self, key: Any) -> Any:
        return self.table.get(key, ABSENT)

    def newest(self, key: Any) -> Any:
        entry = self.current(key)
        return entry if is_immutable(entry) else self.committed(key)  # a function may be folding into it right now

    def before(self, key: Any, entry: Any, log: dict[Any, Any]) -> Any:
        before = log.get(key, UNCHANGED)
        return entry if before is UNCHANGED else before

    def delta_entries(self, keys: Iterable[Any], log: dict[Any, Any]) -> ValueEntries:
        known = list(keys)
        return ValueEntries.of_changed(known, list(map(self.table.get, known)), lambda key: log[key] is not ABSENT)

    def written(self, keys: list[Any]) -> tuple[list[Any], ...]:
        table = self.table
        present = [key for key in keys if key in table]
        return present, [table[key] for key in present]

    def full_entries(self, keys: Iterable[Any]) -> ValueEntries:
        present = list(keys)
        return ValueEntries(present, list(map(self.table.__getitem__, present)))

    def load_entries(self, entries: ValueEntries) -> None:
        self.holds_mutable = self.holds_mutable or not are_immutable(entries.values)
        self.table.update(entries.rows())
        for key in entries.deleted:
            self.table.pop(key, None)
