"""What the heap tables of all shapes have in common: a table, an undo log, and their life in an epoch.

The undo log holds, for each entry that the epoch changed, what was there before. It serves three purposes: its keys are
what the delta must contain, it rolls a failed attempt back, and it answers queries with the last committed value. When
an epoch is committed its log is not thrown away but added to that of the changes since the last checkpoint, so that
state can go back to that checkpoint too, and a checkpoint's delta can span many epochs.
The processing thread always writes the undo log first and the table second; a reader reads the table first and the undo
log second. So a reader in another thread, without a lock, never takes a new value for a committed one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from headwater.state.change_log import Combine, absorbed, merged
from headwater.state.copying import is_immutable, protective_copy


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

_GONE_LIMIT = 4096
"""Fewer traces of what came and went within an epoch are not worth looking for."""

Keep = Callable[[Any], bool]
"""True for a stored element (value, list element, map value) that belongs into a full snapshot."""


class HeapStore(ABC):
    """One table {key: ...} of one state. Subclasses add the shape and are at the same time the user's state object."""

    __slots__ = ("_gone", "_in_flight", "_scope", "_since", "_spanning", "holds_mutable", "lock", "table", "undo")

    def __init__(self, scope: KeyScope) -> None:
        self._scope = scope
        self.table: dict[Any, Any] = {}
        self.undo: dict[Any, Any] = {}
        self._since: dict[Any, Any] = {}
        """The log of the committed epochs after the last checkpoint, complete or in flight."""
        self._in_flight: dict[Any, Any] = {}
        """The log of what the checkpoint in flight contains."""
        self._spanning: dict[Any, Any] | None = None
        """`changes()`, kept from the delta to the commit that follows it."""
        self._gone = 0
        self.holds_mutable = False
        """True once something was stored that can change in place: from then on users get copies of what they read."""
        self.lock: AbstractContextManager[Any] = nullcontext()
        """Held by whoever calls `committed` from another thread."""

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
        """The keys that have an entry."""
        return self.table

    def changes(self) -> dict[Any, Any]:
        """The log of all changes since the last checkpoint, those of the epoch under way included."""
        if not self._since:
            return self.undo
        if self._spanning is None:
            self._spanning = merged(self._since, self.undo, self._combination())
        return self._spanning

    def keys_changed(self, log: dict[Any, Any]) -> Collection[Any]:
        """The keys that `log` is about."""
        return log

    def keys_written(self) -> Collection[Any]:
        """The keys that the epoch under way has changed so far."""
        return self.undo

    def commit(self, *, cut: bool = False) -> None:
        """What the epoch changed is final. With `cut` a checkpoint is in flight that ends with this epoch."""
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
        """The next checkpoint contains what the one in flight would have. Not during an epoch."""
        self._since, self._in_flight = absorbed(self._in_flight, self._since, self._combination()), {}

    def rewind(self) -> None:
        """Take back all changes since the last durable checkpoint."""
        self.rollback()
        for log in (self._since, self._in_flight):
            self.undo = log
            self.rollback()
        self._since, self._in_flight = {}, {}

    def _combination(self) -> Combine | None:
        """How the logs of this shape are combined, if not just the older one counts."""
        return None

    @abstractmethod
    def rollback(self) -> None:
        """Take back what is in the undo log, and leave it empty."""

    def _note_gone(self) -> None:
        """An entry went that came in this epoch. When such traces are most of the undo log, it is made anew without."""
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
        """What the last commit left for `key`, or ABSENT. May be called from another thread. Must not be changed."""

    @abstractmethod
    def delta_entries(self, keys: Iterable[Any], log: dict[Any, Any]) -> tuple[Any, ...]:
        """Encodable changes of `keys`, which are some of `keys_changed(log)`."""

    @abstractmethod
    def full_entries(self, keys: Iterable[Any], keep: Keep | None) -> tuple[Any, ...]:
        """Encodable entries of `keys`, which are keys of the table; only elements that pass `keep`."""

    @abstractmethod
    def load_entries(self, entries: tuple[Any, ...]) -> None:
        """Apply what `delta_entries` or `full_entries` gave. Not part of an epoch: cannot be rolled back."""
