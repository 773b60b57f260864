"""The common part of heap tables of all shapes: a table, an undo log, and their life in epochs.

The undo log has, for each entry that the epoch changed, the value before. It serves three purposes: its keys are the
content of the delta, it rolls a failed attempt back, and it answers queries with the last committed value. A commit
adds the epoch's log to the log of all changes since the last checkpoint. So state can go back to that checkpoint too,
and a checkpoint's delta can span many epochs.

The processing thread always writes the undo log first and the table second; a reader reads the table first and the undo
log second. So a reader in another thread never takes a new value for an old one. It holds the backend's lock, which the
processing thread takes only where logs change hands: at the end of an epoch, and when a checkpoint settles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Any, ClassVar, Protocol

from headwater.state.change_log import Combine, absorbed, keep_log, merged
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

    __slots__ = (
        "_gone", "_in_flight", "_kept", "_scope", "_since", "_spanning", "holds_mutable", "lock", "table",
        "undo", "unshared",
    )  # fmt: skip

    def __init__(self, scope: KeyScope) -> None:
        self._scope = scope
        self.table: dict[Any, Any] = {}
        self.undo: dict[Any, Any] = {}
        self._since: dict[Any, Any] = {}
        """The log of the committed epochs since the last cut."""
        self._in_flight: dict[Any, Any] = {}
        """The log of the changes in the checkpoint in flight."""
        self._kept: dict[int, dict[Any, Any]] = {}
        """{epoch of a durable checkpoint: log of the changes in the next one}, for readers that pinned the epoch."""
        self._spanning: dict[Any, Any] | None = None
        """The result of `changes()`, kept for the commit that follows."""
        self._gone = 0
        self.holds_mutable = False
        """True once something was stored that can change in place: from then on users get copies of what they read."""
        self.unshared = False
        """What is stored is rows that were made for it: see `payload.encode`."""
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

    def is_settled(self) -> bool:
        """Whether nothing has changed since the last durable checkpoint."""
        return not (self.undo or self._since or self._in_flight or self._kept)

    def keys_changed(self, log: dict[Any, Any]) -> Collection[Any]:
        """Return the keys of the entries in `log`."""
        return log

    def log_of_all(self, log: dict[Any, Any]) -> dict[Any, Any]:
        """Return `log` as if all entries were new: a delta of it has the whole state."""
        return {**log, **dict.fromkeys(self.table, ABSENT)}

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

    def checkpoint_completed(self, keep_as: int | None = None, *, join: bool = False) -> None:
        """The checkpoint in flight is durable: state never goes back behind it.

        `keep_as`: the durable checkpoint before it was of this epoch, and somebody still reads it, or (`join`) one
        before it.
        """
        if keep_as is not None:
            keep_log(self._kept, keep_as, self._in_flight, self._kept_combination() if join else None)
        self._in_flight = {}

    def _kept_combination(self) -> tuple[Combine | None] | None:
        """Return how to join logs for readers, if they can be joined long after their epochs."""
        return (self._combination(),)

    def forget_before(self, epoch: int) -> None:
        """Nobody reads the state of earlier epochs any more."""
        self._kept = {kept: log for kept, log in self._kept.items() if kept >= epoch}

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

    # --- for other threads, which hold the lock and must not change what they get

    @abstractmethod
    def current(self, key: Any) -> Any:
        """Return the entry of `key` as of now, or ABSENT. What the processing thread appends to is copied."""

    @abstractmethod
    def before(self, key: Any, entry: Any, log: dict[Any, Any]) -> Any:
        """Return what the entry was before the changes in `log`, if it is `entry` after them."""

    def committed(self, key: Any) -> Any:
        """Return the entry of `key` after the last accepted epoch, or ABSENT."""
        return self.before(key, self.current(key), self.undo)

    def durable(self, key: Any, epoch: int) -> Any:
        """Return the entry of `key` as of the last durable checkpoint, or the pinned one of `epoch`, or ABSENT."""
        entry = self.current(key)
        for log in self._logs_back_to(epoch):
            entry = self.before(key, entry, log)
        return entry

    def newest(self, key: Any) -> Any:
        """Return the entry of `key` now, or ABSENT; as of the last accepted epoch if it may change while it is read."""
        return self.current(key)

    def number(self) -> int:
        """Return how many keys have an entry now."""
        return len(self.keys_stored())

    def some_keys(self, most: int) -> list[Any]:
        """Return up to `most` keys that have an entry now, whichever are found first."""
        return list(islice(self.table, most))

    def candidates(self, epoch: int | None) -> tuple[Iterable[Any], Iterable[Any]]:
        """Return keys that may have an entry that `newest` (None) or `durable` finds: all of now, and of the logs."""
        now = self._candidates_now()  # first, as always
        logs = () if epoch is None else self._logs_back_to(epoch)
        return now, [key for log in logs for key in self._candidates_in(log)]

    def _candidates_now(self) -> list[Any]:
        return list(self.table)

    def _candidates_in(self, log: dict[Any, Any]) -> list[Any]:
        """Return the keys that may have had an entry before the changes in `log`."""
        return list(log)

    finds_pairs: ClassVar[bool] = False

    def pairs_to_try(self, user_key: Any, epoch: int | None) -> list[Any]:
        """Return the (key, namespace) pairs of `user_key` that may have an entry; epoch None: now."""
        raise NotImplementedError(f"{type(self).__name__} does not find pairs")

    def _logs_back_to(self, epoch: int) -> list[dict[Any, Any]]:
        """Return the logs to apply, one after the other, to get from now to a durable checkpoint."""
        kept = [self._kept[each] for each in sorted(self._kept, reverse=True) if each >= epoch]
        return [self.undo, self._since, self._in_flight, *kept]

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
