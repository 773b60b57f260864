"""What the heap tables of all shapes have in common: a table, an undo log, and their life in an epoch.

The undo log holds, for each entry that the epoch changed, what was there before. It serves three purposes: its keys are
what the delta must contain, it rolls a failed attempt back, and it answers queries with the last committed value.
The processing thread always writes the undo log first and the table second; a reader reads the table first and the undo
log second. So a reader in another thread, without a lock, never takes a new value for a committed one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol


class KeyScope(Protocol):
    """Says which entry a state is about: the backend itself for plain state."""

    current_key: Any


class Absent:
    """The class of `ABSENT`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()
"""In an undo log: there was no entry."""

UNCHANGED = Absent()
"""From an undo log: the entry has not been changed."""

Keep = Callable[[Any], bool]
"""True for a stored element (value, list element, map value) that belongs into a full snapshot."""


class HeapStore(ABC):
    """One table {key: ...} of one state. Subclasses add the shape and are at the same time the user's state object."""

    __slots__ = ("_scope", "table", "undo")

    def __init__(self, scope: KeyScope) -> None:
        self._scope = scope
        self.table: dict[Any, Any] = {}
        self.undo: dict[Any, Any] = {}

    @abstractmethod
    def clear(self) -> None:
        """Remove the entry of the current key."""

    def keys_stored(self) -> Collection[Any]:
        """The keys that have an entry."""
        return self.table

    def keys_changed(self) -> Collection[Any]:
        """The keys whose entry may differ from the last commit."""
        return self.undo

    def commit(self) -> None:
        """What the epoch changed is final."""
        # Cleared in place, not replaced: the state objects' methods are the hot path and hold on to both dicts.
        self.undo.clear()

    @abstractmethod
    def rollback(self) -> None:
        """Take back what changed since the last commit."""

    @abstractmethod
    def committed(self, key: Any) -> Any:
        """What the last commit left for `key`, or ABSENT. May be called from another thread. Must not be changed."""

    @abstractmethod
    def delta_entries(self, keys: Iterable[Any]) -> tuple[Any, ...]:
        """Encodable changes of `keys`, which are keys of the undo log."""

    @abstractmethod
    def full_entries(self, keys: Iterable[Any], keep: Keep | None) -> tuple[Any, ...]:
        """Encodable entries of `keys`, which are keys of the table; only elements that pass `keep`."""

    @abstractmethod
    def load_entries(self, entries: tuple[Any, ...]) -> None:
        """Apply what `delta_entries` or `full_entries` gave. Not part of an epoch: cannot be rolled back."""
