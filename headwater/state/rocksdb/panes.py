"""Panes in RocksDB. A namespace is one range in each key group, so that a window ends with one scan of it.

A namespace that is new in the current epoch needs neither look-ups nor a log of its keys. That is the usual case, and
the loops below are written for it.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from headwater.state.change_log import Combine, Join
from headwater.state.copying import captured
from headwater.state.heap.store import ABSENT, KeyScope
from headwater.state.panes import ElementPanes, FoldedPanes, Panes
from headwater.state.rocksdb.cell import ListCell
from headwater.state.rocksdb.database import PREFIX_LENGTH, Changes, Database, DatabaseView
from headwater.state.rocksdb.keys import decode_key, encode_key
from headwater.state.rocksdb.list import REWRITTEN, ListCells, older_length
from headwater.state.rocksdb.store import MISSING, RocksStore, StoreOwner, in_pieces
from headwater.state.snapshot.entries import ListEntries, ValueEntries

_NO_NAMESPACE: Any = object()
_NAMESPACE = struct.Struct(">q")
_KEY_START = PREFIX_LENGTH + _NAMESPACE.size
_AFTER_ALL_KEYS = b"\xff"

Pair = tuple[Any, int]
"""(key, namespace)"""


class _Pane:
    """The known entries of one namespace: some, or all if `complete`."""

    __slots__ = ("complete", "values")

    def __init__(self, *, complete: bool) -> None:
        self.values: dict[Any, Any] = {}
        self.complete = complete


class _RocksPanes(RocksStore, Panes):
    """Heads: the entries. Changed {namespace: None if it is new, or {key: log entry}}."""

    def __init__(self, owner: StoreOwner, scope: KeyScope, name: str, state_id: int, namespaced: bool) -> None:
        super().__init__(owner, scope, name, state_id, namespaced)
        self._known: dict[int, _Pane] | None = {}
        """All namespaces that exist now. None: unknown, ask the database."""
        self._stored: set[int] = set()
        """The namespaces in the database."""

    # -- for operators -------------------------------------------------------------------------------------------------

    def namespaces(self) -> Collection[int]:
        return self._panes().keys()

    def peek(self, namespace: int) -> Mapping[Any, Any]:
        pane = self._panes().get(namespace)
        return {} if pane is None else self._to_look_at(namespace, self._completed(namespace, pane))

    def take(self, namespace: int) -> tuple[list[Any], list[Any]]:
        pane = self._removed(namespace)
        if pane is None:
            return [], []
        return list(pane.values), [self._given(key, namespace, value) for key, value in pane.values.items()]

    def drop(self, namespace: int) -> None:
        self._removed(namespace)

    def clear(self) -> None:
        key, namespace = self._scope.current_key
        pane = self._panes().get(namespace)
        value = MISSING if pane is None else self._value(pane, key, namespace)
        if pane is None or value is MISSING:
            return
        log = self._log_of(namespace)
        if log is not None:
            log[key] = self._gone(key, namespace, value, log.get(key, MISSING))
        pane.values.pop(key, None)
        if not self._completed(namespace, pane).values:
            del self._panes()[namespace]

    def _removed(self, namespace: int) -> _Pane | None:
        """Remove a whole namespace and return its complete pane; None if it does not exist."""
        pane = self._panes().get(namespace)
        if pane is None:
            return None
        self._completed(namespace, pane)
        log = self._log_of(namespace)
        if log is not None:
            for key, value in pane.values.items():
                log[key] = self._gone(key, namespace, value, log.get(key, MISSING))
        del self._panes()[namespace]
        return pane

    # -- shapes differ in ----------------------------------------------------------------------------------------------

    @abstractmethod
    def _loads(self, data: bytes) -> Any:
        """Return the entry as an object in memory."""

    @abstractmethod
    def _before(self, entry: Any) -> Any:
        """Return the log entry for a committed entry that is about to change; `entry` MISSING: there is none."""

    @abstractmethod
    def _gone(self, key: Any, namespace: int, entry: Any, before: Any) -> Any:
        """Return the log entry for an entry that is removed. `before` is its log entry so far, or MISSING."""

    @abstractmethod
    def _given(self, key: Any, namespace: int, entry: Any) -> Any:
        """Return the value for the operator."""

    @abstractmethod
    def _to_look_at(self, namespace: int, pane: _Pane) -> Mapping[Any, Any]:
        """Return {key: value for the operator}."""

    @abstractmethod
    def _collect_entry(self, pair: Pair, entry: Any, changes: Changes) -> None:
        """Append to `changes` what stores `entry`."""

    def _collect_removals(self, changes: Changes) -> None:
        """Append to `changes` what deletes the bodies of removed entries."""

    # -- what is known -------------------------------------------------------------------------------------------------

    def _panes(self) -> dict[int, _Pane]:
        if self._known is None:
            self._stored = set(self._stored_namespaces())
            self._known = {namespace: _Pane(complete=False) for namespace in sorted(self._stored)}
        return self._known

    def _stored_namespaces(self) -> Iterator[int]:
        for start in self._owned(self._heads):
            after: bytes | None = None
            while (entry := next(self._database.scan(start, after), None)) is not None:
                yield _NAMESPACE.unpack_from(entry[0], PREFIX_LENGTH)[0]
                after = entry[0][:_KEY_START] + _AFTER_ALL_KEYS

    def _open(self, namespace: int) -> tuple[_Pane, dict[Any, Any] | None]:
        """Return the pane of `namespace`, created if missing, and the log of its keys (None: it needs no log)."""
        log = self._log_of(namespace)
        panes = self._panes()
        pane = panes.get(namespace)
        if pane is None:
            pane = panes[namespace] = _Pane(complete=True)
        return pane, log

    def _log_of(self, namespace: int) -> dict[Any, Any] | None:
        log: dict[Any, Any] | None = self.changed.get(namespace, MISSING)
        if log is MISSING:
            self._panes()
            log = self.changed[namespace] = {} if namespace in self._stored else None
        return log

    def _value(self, pane: _Pane, key: Any, namespace: int) -> Any:
        """Return the entry of `key`, or MISSING if there is none."""
        if key in pane.values:
            return pane.values[key]
        log = self.changed.get(namespace)
        if pane.complete or (log is not None and key in log):
            return MISSING
        data = self._database.get(self._address((key, namespace)))
        if data is None:
            return MISSING
        entry = pane.values[key] = self._loads(data)
        return entry

    def _first(self, pane: _Pane, log: dict[Any, Any], key: Any, namespace: int) -> Any:
        """Log an entry before its first change in the epoch. Return the entry, or None."""
        entry = self._value(pane, key, namespace)
        log[key] = self._before(entry)
        return None if entry is MISSING else entry

    def _completed(self, namespace: int, pane: _Pane) -> _Pane:
        """Load all entries of `pane` and return it: stored ones in the order of the database, then new ones."""
        if not pane.complete:
            known, removed = pane.values, self.changed.get(namespace) or {}
            values: dict[Any, Any] = {}
            for key, data in self._entries_of(namespace):
                if key in known:
                    values[key] = known[key]
                elif key not in removed:
                    values[key] = self._loads(data)
            values.update(known)
            pane.values, pane.complete = values, True
        return pane

    def _entries_of(self, namespace: int) -> Iterator[tuple[Any, bytes]]:
        packed = _NAMESPACE.pack(namespace)
        for start in self._owned(self._heads):
            for address, data in self._database.scan(start + packed):
                yield self._key_in(address, data)[0], data

    def _encode(self, key: Pair) -> tuple[bytes, bool]:
        encoded, says_all = encode_key(key[0])
        return _NAMESPACE.pack(key[1]) + encoded, says_all

    def _decode(self, address: bytes) -> Pair:
        return decode_key(address, _KEY_START)[0], _NAMESPACE.unpack_from(address, PREFIX_LENGTH)[0]

    # -- epochs --------------------------------------------------------------------------------------------------------

    def collect(self) -> Changes:
        changes: Changes = []
        count = self.count()
        self._collect_removals(changes)
        for pair, entry in self._changed_entries():
            if entry is not MISSING:
                self._collect_entry(pair, entry, changes)
            elif self.changed[pair[1]][pair[0]]:
                changes.append((self._address(pair), None))
        self._count = count
        self._note_sizes(changes)
        return changes

    def _changed_entries(self) -> Iterator[tuple[Pair, Any]]:
        """Yield (pair, entry now, or MISSING) for all changes of the epoch. Changed entries are always in memory."""
        panes = self._panes()
        for namespace, log in self.changed.items():
            pane = panes.get(namespace)
            values = {} if pane is None else pane.values
            for key in values if log is None else log:
                yield (key, namespace), values.get(key, MISSING)

    def committed_now(self, *, cut: bool) -> None:
        panes = self._panes()
        for namespace in self.changed:
            if namespace in panes:
                self._stored.add(namespace)
            else:
                self._stored.discard(namespace)
        super().committed_now(cut=cut)

    def make_room(self, needed: int = 0) -> None:
        limit = self._entries_with_room() - needed
        panes = self._panes()
        held = sum(len(pane.values) for pane in panes.values())
        for pane in panes.values():
            if held <= limit:
                break
            held -= len(pane.values)
            pane.values, pane.complete = {}, False

    def rollback(self) -> None:
        panes = self._panes()
        for namespace in self.changed:
            if namespace in self._stored:
                panes[namespace] = _Pane(complete=False)
            else:
                panes.pop(namespace, None)
        self.changed = {}

    _combine_keys: Combine | None = None

    def _combination(self) -> Combine:
        return self._combined

    def _kept_combination(self) -> None:
        """Logs of panes are joined with a look at what is stored now, so they cannot be joined later."""

    def _combined(self, namespace: int, older: Any, newer: Any, join: Join) -> Any:
        if older is None:
            return older
        if newer is None:  # the older changes removed it, the newer made it anew: no current entry existed before
            newer = dict.fromkeys(self._keys_now(namespace), self._before(MISSING))
        return join(older, newer, self._combine_keys)

    def _keys_now(self, namespace: int) -> Iterable[Any]:
        pane = self._panes().get(namespace)
        return () if pane is None else self._completed(namespace, pane).values

    def keys_changed(self, log: dict[Any, Any]) -> Collection[Any]:
        return [
            (key, namespace)
            for namespace, keys in log.items()
            for key in (self._keys_now(namespace) if keys is None else keys)
        ]

    # -- all keys ------------------------------------------------------------------------------------------------------

    def has(self, key: Pair) -> bool:
        return self._entry(key) is not MISSING

    def _entry(self, pair: Pair) -> Any:
        pane = self._panes().get(pair[1])
        return MISSING if pane is None else self._value(pane, *pair)

    def count(self) -> int:
        count = self.stored_count()
        for (key, namespace), entry in self._changed_entries():
            log = self.changed[namespace]
            count += (entry is not MISSING) - bool(log is not None and log[key])
        return count

    def keys_of_group(self, group: int) -> list[Any]:
        stored = (self._key_in(*entry) for entry in self._database.scan(self._heads[group]))
        keys = [pair for pair in stored if not self._is_changed(pair)]
        return keys + [pair for pair, entry in self._changed_of(group) if entry is not MISSING]

    def pairs_of(self, user_key: Any) -> list[Any]:
        return [(user_key, namespace) for namespace in self._panes() if self.has((user_key, namespace))]

    def _is_in(self, log: dict[Any, Any], key: Any) -> bool:
        keys = log.get(key[1], MISSING)
        return keys is None or (keys is not MISSING and key[0] in keys)

    def _candidates_in(self, log: dict[Any, Any]) -> list[Any]:
        return [(key, namespace) for namespace, keys in log.items() if keys is not None for key in keys]

    def pairs_to_try(self, user_key: Any, epoch: int | None) -> list[Any]:
        logs = () if epoch is None else self._logs_since(epoch)
        namespaces = [*(each for log in logs for each in log), *self._stored_namespaces()]
        return [(user_key, namespace) for namespace in dict.fromkeys(namespaces)]

    def _is_changed(self, pair: Pair) -> bool:
        log = self.changed.get(pair[1])
        return log is not None and pair[0] in log

    def _changed_of(self, group: int) -> list[tuple[Pair, Any]]:
        if not self.changed:
            return []
        return [(pair, entry) for pair, entry in self._changed_entries() if self.group_of(pair) == group]

    def _entries(self, group: int) -> Iterator[tuple[Pair, Any, int, bytes | None]]:
        """Yield (pair, entry, size, prefix of its body entries or None to derive it from `pair`) of a key group."""
        for address, data in self._database.scan(self._heads[group]):
            pair = self._key_in(address, data)
            if not self._is_changed(pair):
                yield pair, self._loads(data), len(data), self._body_at(address, group)
        for pair, entry in self._changed_of(group):
            if entry is not MISSING:
                yield pair, entry, 64, None

    def loaded(self) -> None:
        super().loaded()
        self._known = None


class RocksFoldedPanes(_RocksPanes, FoldedPanes):
    """One value per key of a pane. The log entry is True if there was one before."""

    def reduce(
        self, keys: Iterable[Any], namespaces: Iterable[int], values: Iterable[Any], reduce: Callable[[Any, Any], Any]
    ) -> None:
        current = _NO_NAMESPACE
        pane = _Pane(complete=True)
        known: dict[Any, Any] = {}
        log: dict[Any, Any] | None = None
        for namespace, key, value in zip(namespaces, keys, values):  # noqa: B905 - `namespaces` may be endless
            if namespace != current:
                pane, log = self._open(namespace)
                known, current = pane.values, namespace
            so_far = known.get(key) if log is None or key in log else self._first(pane, log, key, namespace)
            folded = value if so_far is None else reduce(so_far, value)
            known[key] = folded if folded is so_far else captured(folded)

    def aggregate(
        self,
        keys: Iterable[Any],
        namespaces: Iterable[int],
        values: Iterable[Any],
        create: Callable[[], Any],
        add: Callable[[Any, Any], Any],
    ) -> None:
        current = _NO_NAMESPACE
        pane = _Pane(complete=True)
        known: dict[Any, Any] = {}
        log: dict[Any, Any] | None = None
        for namespace, key, value in zip(namespaces, keys, values):  # noqa: B905
            if namespace != current:
                pane, log = self._open(namespace)
                known, current = pane.values, namespace
            so_far = known.get(key) if log is None or key in log else self._first(pane, log, key, namespace)
            folded = add(value, create() if so_far is None else so_far)
            known[key] = folded if folded is so_far else captured(folded)

    def _loads(self, data: bytes) -> Any:
        return self._database.loads(data)

    def _before(self, entry: Any) -> bool:
        return entry is not MISSING

    def _gone(self, key: Any, namespace: int, entry: Any, before: Any) -> bool:
        return before is MISSING or bool(before)

    def _given(self, key: Any, namespace: int, entry: Any) -> Any:
        return entry

    def _to_look_at(self, namespace: int, pane: _Pane) -> Mapping[Any, Any]:
        return pane.values

    def _collect_entry(self, pair: Pair, entry: Any, changes: Changes) -> None:
        changes.append((self._address(pair), self._head(pair, entry)))

    def committed(self, key: Any) -> Any:
        return self.stored_in(self._database, key)

    def stored_in(self, view: Database | DatabaseView, key: Any) -> Any:
        data = view.get(self._address(key))
        return ABSENT if data is None else view.loads(data)

    def delta_entries(self, keys: Iterable[Any], log: dict[Any, Any]) -> ValueEntries:
        present: list[Pair] = []
        values: list[Any] = []
        deleted: list[Pair] = []
        for pair in keys:
            entry = self._entry(pair)
            if entry is not MISSING:
                present.append(pair)
                values.append(entry)
            elif (pane_log := log[pair[1]]) is not None and pane_log[pair[0]]:
                deleted.append(pair)
        return ValueEntries(present, values, deleted)

    def full_entries(self, group: int) -> Iterator[ValueEntries]:
        for rows in in_pieces(self._entries(group), lambda row: row[2]):
            yield ValueEntries([row[0] for row in rows], [row[1] for row in rows])

    def load_entries(self, entries: ValueEntries) -> Changes:
        changes: Changes = []
        for pair, value in entries.rows():
            self._collect_entry(pair, value, changes)
        changes += [(self._address(pair), None) for pair in entries.deleted]
        return changes


class RocksElementPanes(_RocksPanes, ListCells, ElementPanes):
    """A list per key of a pane. The log entry is its length before (0: there was none), or REWRITTEN."""

    def __init__(self, owner: StoreOwner, scope: KeyScope, name: str, state_id: int, namespaced: bool) -> None:
        super().__init__(owner, scope, name, state_id, namespaced)
        self._removed_cells: list[tuple[Pair, ListCell]] = []
        """Removed lists that have pieces in the database."""

    def append(self, keys: Iterable[Any], namespaces: Iterable[int], values: Iterable[Any]) -> None:
        current = _NO_NAMESPACE
        pane = _Pane(complete=True)
        known: dict[Any, Any] = {}
        log: dict[Any, Any] | None = None
        for namespace, key, value in zip(namespaces, keys, values):  # noqa: B905
            if namespace != current:
                pane, log = self._open(namespace)
                known, current = pane.values, namespace
            cell = known.get(key) if log is None or key in log else self._first(pane, log, key, namespace)
            if cell is None:
                known[key] = ListCell(elements=[value])
            else:
                cell.elements.append(value)

    def _loads(self, data: bytes) -> ListCell:
        return ListCell.from_head(data, self._database)

    def _before(self, entry: Any) -> int:
        return 0 if entry is MISSING else len(entry)

    def _gone(self, key: Any, namespace: int, entry: ListCell, before: Any) -> int:
        if entry.pieces:
            self._removed_cells.append(((key, namespace), ListCell(entry.sealed, entry.pieces)))
        return 0 if before == 0 else REWRITTEN

    def _given(self, key: Any, namespace: int, entry: ListCell) -> list[Any]:
        return entry.whole(self._database, self._body((key, namespace)))

    def _to_look_at(self, namespace: int, pane: _Pane) -> Mapping[Any, Any]:
        return _Lists(self, namespace, pane.values)

    def _collect_entry(self, pair: Pair, entry: ListCell, changes: Changes) -> None:
        head = lambda content: self._head(pair, content)  # noqa: E731
        entry.collect(changes, self._address(pair), self._body(pair), head, self._dumps)

    def _collect_removals(self, changes: Changes) -> None:
        for pair, cell in self._removed_cells:
            cell.replace([])
            cell.collect(changes, self._address(pair), self._body(pair), self._dumps, self._dumps)

    def committed_now(self, *, cut: bool) -> None:
        super().committed_now(cut=cut)
        self._removed_cells = []

    def rollback(self) -> None:
        super().rollback()
        self._removed_cells = []

    _combine_keys = staticmethod(older_length)

    def delta_entries(self, keys: Iterable[Any], log: dict[Any, Any]) -> ListEntries:
        present: list[Pair] = []
        bases: list[int] = []
        added: list[list[Any]] = []
        deleted: list[Pair] = []
        for pair in keys:
            cell, pane_log = self._entry(pair), log[pair[1]]
            before = 0 if pane_log is None else pane_log[pair[0]]
            if cell is not MISSING:
                base = max(before, 0)
                present.append(pair)
                bases.append(base)
                added.append(cell.since(base, self._database, self._body(pair)))
            elif before:
                deleted.append(pair)
        return ListEntries(present, bases, added, deleted)

    def full_entries(self, group: int) -> Iterator[ListEntries]:
        for rows in in_pieces(self._entries(group), lambda row: row[2] * (1 + row[1].pieces)):
            lists = [cell.whole(self._database, body or self._body(pair)) for pair, cell, _, body in rows]
            yield ListEntries.of_lists([row[0] for row in rows], lists)

    def load_entries(self, entries: ListEntries) -> Changes:
        changes: Changes = []
        for pair, base, elements in entries.rows():
            cell = self._stored_cell(pair)
            self._load_elements(pair, cell, base, elements, "a window")
            self._collect_entry(pair, cell, changes)
        for pair in entries.deleted:
            cell = self._stored_cell(pair)
            cell.replace([])
            self._collect_entry(pair, cell, changes)
        return changes


class _Lists(Mapping[Any, Any]):
    """{key: list} of a pane, read-only. It reads a list only when asked for it."""

    def __init__(self, panes: RocksElementPanes, namespace: int, cells: dict[Any, ListCell]) -> None:
        self._panes = panes
        self._namespace = namespace
        self._cells = cells

    def __getitem__(self, key: Any) -> list[Any]:
        return self._panes._given(key, self._namespace, self._cells[key])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)
