"""The common part of heap tables of all shapes: a table, an undo log, and their life in epochs.

The undo log has, for each entry that the epoch changed, the value before. It serves three purposes: its keys are the
content of the delta, it rolls a failed attempt back, and it answers queries with the last committed value. A commit
adds the epoch's log to the log of all changes since the last checkpoint. So state can go back to that checkpoint too,
and a checkpoint's delta can span many epochs.

The processing thread always writes the undo log first and the table second; a reader reads the table first and the undo
log second. So a reader in another thread needs no lock and never takes a new value for a committed one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from headwater.state.change_log import Combine, absorbed, merged
from headwater.state.copying import is_immutable, protective_copy
from headwater.state.snapshot.entries import Entries


class KeyScope(Protocol):
    """Says which entry a state reads and writes. For plain state, this is the backend itself."""

    current_key: Any


class Absent:
    """The class of `ABSENT`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()
"""In an undo log: there was no entry."""

UNCHANGED = Absent()
"""Default for look-ups in an undo log: the entry has not changed."""

_GONE_LIMIT = 4096
"""Clean the undo log only if at least this many entries came and went within the epoch."""


class HeapStore(ABC):
    """The table {key: ...} of one state. Subclasses add the shape; they are also the user's state objects."""

    __slots__ = ("_gone", "_in_flight", "_scope", "_since", "_spanning", "holds_mutable", "lock", "table", "undo")

    def __init__(self, scope: KeyScope) -> None:
        self._scope = scope
        self.table: dict[Any, Any] = {}
        self.undo: dict[Any, Any] = {}
        self._since: dict[Any, Any] = {}
        """The log of the committed epochs since the last cut."""
        self._in_flight: dict[Any, Any] = {}
        """The log of the changes in the checkpoint in flight."""
        self._spanning: dict[Any, Any] | None = None
        """The result of `changes()`, kept for the commit that follows."""
        self._gone = 0
        self.holds_mutable = False
        """True once something was stored that can change in place: from then on users get copies of what they read."""
        self.lock: AbstractContextManager[Any] = nullcontext()
        """Callers of `committed` in other threads hold it."""

    @abstractmethod
    def clear(self) -> None:
        """Remove the entry of the current key."""

    def owned(self, value: Any, given_away: bool = False) -> Any:
        """`value` as it is now, to be stored: what its giver does to it later is no concern of the state."""
        if is_immutable(value):
            return value
        self.holds_mutable = True
        return value if given_away else protective_copy(value)

    def keys_stored(self) -> Collection[Any]:
        """Return the keys that have an entry."""
        return self.table

    def changes(self) -> dict[Any, Any]:
        """Return the log of all changes since the last cut, including those of the current epoch."""
        if not self._since:
            return self.undo
        if self._spanning is None:
            self._spanning = merged(self._since, self.undo, self._combination())
        return self._spanning

    def keys_changed(self, log: dict[Any, Any]) -> Collection[Any]:
        """Return the keys of the entries in `log`."""
        return log

    def keys_written(self) -> Collection[Any]:
        """Return the keys that the current epoch has changed so far."""
        return self.undo

    def commit(self, *, cut: bool = False) -> None:
        """Make the epoch's changes final. With `cut`, a checkpoint ends with this epoch and is now in flight."""
        changes = self.changes() if cut else absorbed(self._since, self.undo, self._combination())
        self.undo, self._spanning = {}, None
        if cut:
            self._in_flight, self._since = changes, {}
        else:
            self._since = changes

    def checkpoint_completed(self) -> None:
        """The checkpoint in flight is durable: state never goes back behind it."""
        self._in_flight = {}

    def checkpoint_failed(self) -> None:
        """The checkpoint in flight failed: the next one must contain its changes too. Called between epochs."""
        self._since, self._in_flight = absorbed(self._in_flight, self._since, self._combination()), {}

    def rewind(self) -> None:
        """Undo all changes since the last durable checkpoint."""
        self.rollback()
        for log in (self._since, self._in_flight):
            self.undo = log
            self.rollback()
        self._since, self._in_flight = {}, {}

    def _combination(self) -> Combine | None:
        """Return how to combine two log entries of this shape; None: the older one wins."""
        return None

    @abstractmethod
    def rollback(self) -> None:
        """Undo the changes in the undo log, and empty the log."""

    def _note_gone(self) -> None:
        """Count an entry that came and went within the epoch. If they are most of the undo log, remove them from it."""
        self._gone += 1
        if self._gone >= _GONE_LIMIT and self._gone > len(self.undo) // 2:
            with self.lock:
                self._forget_gone()
            self._gone = 0

    def _forget_gone(self) -> None:
        table = self.table
        self.undo = {key: before for key, before in self.undo.items() if before is not ABSENT or key in table}

    @abstractmethod
    def committed(self, key: Any) -> Any:
        """Return the committed entry of `key`, or ABSENT. Any thread may call this. The caller must not change it."""

    @abstractmethod
    def delta_entries(self, keys: Iterable[Any], log: dict[Any, Any]) -> Entries:
        """Return the changes of `keys`, which are some of `keys_changed(log)`."""

    @abstractmethod
    def full_entries(self, keys: Iterable[Any]) -> Entries:
        """Return the entries of `keys`, which are some of `keys_stored()`."""

    @abstractmethod
    def load_entries(self, entries: Any) -> None:
        """Apply the result of `delta_entries` or `full_entries`. Called outside of epochs: it cannot be rolled back."""

    def convert(self, convert: Callable[[Any], Any], *, dated: bool = False) -> None:
        """Convert all values before the first use of the state (see `Entries`). If `convert` raises, nothing changes.

        Called outside of epochs: it cannot be rolled back.
        """
        entries = self.full_entries(self.keys_stored()).converted(convert, dated=dated)
        self.table.clear()
        self.load_entries(entries)
