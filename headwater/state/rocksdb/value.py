"""Value state in RocksDB. Access to a cached value costs little more than on the heap.

Plain values (numbers, strings, tuples of them) are not written after each epoch. They wait in the cache until the cache
is full or somebody reads the whole database, so a key that changes in every epoch is written once. Durability does not
depend on it: checkpoints contain the waiting values too.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from itertools import chain, islice, repeat
from typing import Any, Final

from headwater.state.api import ValueState
from headwater.state.change_log import keep_first, merged
from headwater.state.copying import ATOMIC, PLAIN, captured, is_immutable, protective_copy
from headwater.state.heap.store import ABSENT, Absent, KeyScope
from headwater.state.rocksdb.database import Changes, Database, DatabaseView
from headwater.state.rocksdb.keys import INT, MAX_INT, MIN_INT, pack_int
from headwater.state.rocksdb.store import KEY_FOLLOWS, MISSING, SAMPLE, RocksStore, StoreOwner, in_pieces
from headwater.state.rocksdb.values import OF_A_CLASS
from headwater.state.snapshot.entries import ValueEntries
from headwater.state.snapshot.payload import PROTOCOL

_CLEAN_BYTES: Final = 60
"""Memory per entry of `_clean`."""

WRITTEN_AT_ONCE: Final = 25_000
"""Writing this many values takes one or two tenths of a second."""

_SOMETHING: Final = Absent()
"""In `changed`: there was a value before, but nobody has read it. In a log: it is in the database of that time."""


class _Unread(bytes):
    """In a log: the value before as the database had it."""

    __slots__ = ()


class RocksValueState(RocksStore, ValueState[Any]):
    """Head: the value. Cache {key: value, or None}; changed {key: value before, None, or MISSING if unknown}."""

    def __init__(self, owner: StoreOwner, scope: KeyScope, name: str, state_id: int, namespaced: bool) -> None:
        super().__init__(owner, scope, name, state_id, namespaced)
        self._object_bytes += _CLEAN_BYTES
        self._empty = True
        """Nothing was ever written to the database, so nothing must be read."""
        self._removed: set[Any] = set()
        """Keys of `changed` that have no value now."""
        self._new: list[Any] = []
        """Keys of `changed` that had no value before."""
        self._unsettled = False
        """`changed` may contain MISSING."""
        self._unread: dict[Any, _Unread] = {}
        """The stored value of each key that has _SOMETHING in `changed`."""
        self._to_write: set[Any] = set()
        """Keys of `changed` whose value is, or was before, not plain. They are written when the epoch ends."""
        self._clean: set[Any] = set()
        """Cached keys whose committed value is in the database. The committed value of any other cached key is only in
        the cache or, if the epoch changed it, in `changed`."""

    def value(self) -> Any:
        key = self._scope.current_key
        value = self.cache.get(key, MISSING)
        if value is MISSING:
            value = self._read(key)
        if value.__class__ is tuple:
            for part in value:
                if part.__class__ not in ATOMIC:
                    break
            else:
                return value
        return value if value.__class__ in ATOMIC else protective_copy(value)

    def live(self) -> Any:
        """The value itself, for a function that folds: it may change it in place and have it stored with `update`."""
        key = self._scope.current_key
        value = self._known(key)
        if key not in self.changed and not is_immutable(value):
            self.changed[key] = value  # what was there before is in the database, too
            self._to_write.add(key)
        return value

    def update(self, value: Any, given_away: bool = False) -> None:
        """`given_away`: nobody else holds any part of `value` that can change."""
        key = self._scope.current_key
        if value.__class__ is tuple:
            for part in value:
                if part.__class__ not in PLAIN:
                    value = self._to_be_written(key, value, given_away)
                    break
        elif value.__class__ not in PLAIN:
            value = self._to_be_written(key, value, given_away)
        if key not in self.changed:
            self.changed[key] = before = self.cache.get(key, MISSING)
            if before is None:
                self._new.append(key)
            elif before is MISSING:
                self._unsettled = True
        self.cache[key] = value
        if value is None:
            self._removed.add(key)
            return
        if self._removed:
            self._removed.discard(key)

    def _to_be_written(self, key: Any, value: Any, given_away: bool) -> Any:
        """What to store for `value`, which is not a plain one, and is not to wait in the cache."""
        self._to_write.add(key)
        return value if given_away or value is self.cache.get(key) else captured(value)

    def clear(self) -> None:
        self.update(None)

    def peek(self) -> Any:
        """Return the value without counting as a touch. The caller must not change it, nor hand it to a user."""
        return self._known(self._scope.current_key)

    def prefetch(self, keys: Iterable[Any]) -> None:
        """Read the uncached values of `keys` into the cache, in the order of the database: at a third of the cost."""
        cache, loads = self.cache, self._database.loads
        unknown: dict[bytes, Any] = {}
        for group, members in self.by_key_group({key: None for key in keys if key not in cache}).items():
            start = self._heads[group]
            unknown.update((start + self._encode(key)[0], key) for key in members)
        if len(cache) + len(unknown) > self._room:
            self.make_room(len(unknown))
        addresses = sorted(unknown)
        for first in range(0, len(addresses), 1000):
            some = addresses[first : first + 1000]
            values = [None if data is None else loads(data) for data in self._database.get(some)]
            found = [unknown[address] for address in some]
            self._clean.update(found)
            cache.update(zip(found, values, strict=True))

    def _known(self, key: Any) -> Any:
        value = self.cache.get(key, MISSING)
        return self._read(key) if value is MISSING else value

    def _read(self, key: Any) -> Any:
        data = None if self._empty else self._database.get(self._address(key))
        if data is None:
            value = None
        else:
            value = self._database.loads(data)
            self._note_size(len(data))
        if len(self.cache) >= self._room:
            self.make_room()
        self._clean.add(key)  # before caching it: otherwise a query takes it for a waiting value
        self.cache[key] = value
        return value

    def has(self, key: Any) -> bool:
        return self._known(key) is not None

    def count(self) -> int:
        self._settle()
        return self.stored_count() + len(self._new) - len(self._removed)

    def _settle(self) -> None:
        """Ask the database which keys had a value, for keys that the epoch wrote without reading."""
        if self._unsettled:
            changed = self.changed
            unknown = [key for key, before in changed.items() if before is MISSING]
            for key, data in zip(unknown, self._database.get(list(map(self._address, unknown))), strict=True):
                changed[key] = None if data is None else _SOMETHING
                if data is None:
                    self._new.append(key)
                else:
                    self._unread[key] = _Unread(data)
            self._unsettled = False

    def changes(self) -> dict[Any, Any]:
        """Return {key: its value before; None: it had none}."""
        return merged(self._since, self._befores())

    def _befores(self) -> dict[Any, Any]:
        """Return the epoch's changes as a log: values that cannot change, or where the value before is."""
        self._settle()
        befores = {**self.changed, **self._unread}
        for key in self._to_write:  # a function may have changed the old one in place, but the database has it
            if key not in self._unread and not is_immutable(befores[key]):
                befores[key] = _SOMETHING
        return befores

    def collect(self) -> Changes:
        self._count = self.count()
        waiting = list(islice((key for key in self.changed if key not in self._to_write), SAMPLE))
        self._note_sizes(self._encoded(waiting, self.cache))
        changes = self._encoded(self._to_write, self.cache)
        self._empty = self._empty and not changes
        self._note_sizes(changes)
        return changes

    def _encoded(self, keys: Iterable[Any], values: dict[Any, Any]) -> Changes:
        changes: Changes = []
        dumps = pickle.dumps
        plain = not self.pickler.meets_classes
        for group, members in self.by_key_group(keys).items():
            start = self._heads[group]
            for key in members:
                if key.__class__ is int and MIN_INT <= key <= MAX_INT:
                    encoded, says_all = pack_int(INT, key), True
                else:
                    encoded, says_all = self._encode(key)
                value = values[key]
                if value is None:
                    changes.append((start + encoded, None))
                    continue
                try:
                    data = dumps(value, PROTOCOL) if plain else OF_A_CLASS
                except Exception:
                    data = OF_A_CLASS
                if OF_A_CLASS in data:
                    data = self._dumps(value)
                changes.append((start + encoded, data if says_all else data + self._dumps(key) + KEY_FOLLOWS))
        return changes

    def committed_now(self, *, cut: bool) -> None:
        clean = self._clean
        if clean:
            came_and_went = [key for key in self._new if key in self._removed and key in clean]
            clean.difference_update(self.changed)
            clean.update(came_and_went)
        clean.update(self._to_write)
        super().committed_now(cut=cut)
        self._forget_notes()

    def _absorbed(self) -> dict[Any, Any]:
        befores = self._befores()
        if not self._since:
            return befores
        keep_first(self._since, befores, befores.values())
        return self._since

    def _forget_notes(self) -> None:
        self._removed.clear()
        self._new.clear()
        self._to_write.clear()
        self._unread.clear()
        self._unsettled = False

    def waiting(self) -> dict[Any, Any]:
        """Return {key: committed value, or None} of the keys whose committed value is not in the database."""
        if len(self._clean) == len(self.cache):
            return {}
        changed, clean = self.changed, self._clean
        committed = {key: changed.get(key, value) for key, value in self.cache.items() if key not in clean}
        if changed:  # unread values are unknown here, but they are in the database
            committed = {key: value for key, value in committed.items() if value.__class__ is not Absent}
        return committed

    def flush(self) -> None:
        self._write_waiting(self.waiting())

    def flush_some(self) -> dict[Any, Any]:
        """Write at most `WRITTEN_AT_ONCE` of the waiting values. Return the others, in the form of `waiting`.

        Values that have not changed lately go first: they may stay unchanged for long.
        """
        waiting = self.waiting()
        if len(waiting) <= WRITTEN_AT_ONCE:
            self._write_waiting(waiting)
            return {}
        lately = self._in_flight or self._since
        some = dict(islice((entry for entry in waiting.items() if entry[0] not in lately), WRITTEN_AT_ONCE))
        self._write_waiting(some)
        for key in some:
            del waiting[key]
        return waiting

    def _write_waiting(self, committed: dict[Any, Any]) -> None:
        if committed:
            changes = self._encoded(committed, committed)
            self._empty = False
            self._owner.write_committed(changes, lambda: self._clean.update(committed))
            self._note_sizes(changes)

    def make_room(self, needed: int = 0) -> None:
        full = len(self.cache) + needed >= self._entries_with_room()
        if full:
            self.flush()
        super().make_room(needed)
        if full:
            self._clean.intersection_update(self.cache)

    def rollback(self) -> None:
        changed, clean, cache = self.changed, self._clean, self.cache
        for key, before in changed.items():
            if key in clean or before.__class__ is Absent:
                cache.pop(key, None)
                clean.discard(key)
            else:
                cache[key] = before
        self.changed = {}
        self._forget_notes()

    def committed(self, key: Any) -> Any:
        value = self.cache.get(key, MISSING)  # first: the other thread fills `changed` before the cache
        before = self.changed.get(key, value)
        if before.__class__ is Absent or key in self._clean:
            data = self._database.get(self._address(key))
            return ABSENT if data is None else self._database.loads(data)
        return ABSENT if before is None else before

    def stored_in(self, view: Database | DatabaseView, key: Any) -> Any:
        data = view.get(self._address(key))
        return ABSENT if data is None else view.loads(data)

    def newest(self, key: Any) -> Any:
        value = self.cache.get(key, MISSING)
        if value.__class__ is Absent or not is_immutable(value):
            return self.committed(key)
        return ABSENT if value is None else value

    def durable(self, key: Any, epoch: int) -> Any:
        for log in self._logs_since(epoch):
            if key in log:
                before = log[key]
                if before is _SOMETHING:
                    return self.stored_in(self._owner.view(epoch), key)
                if before.__class__ is _Unread:
                    return self._database.loads(before)
                return ABSENT if before is None else before
        return self.committed(key)

    def candidates(self, epoch: int | None) -> tuple[Iterable[Any], Iterable[Any]]:
        cached = list(self.cache)  # first: what leaves it meanwhile is in the database by then
        stored, changed = super().candidates(epoch)
        return stored, chain(cached, changed)

    def pairs_to_try(self, user_key: Any, epoch: int | None) -> list[Any]:
        cached = [pair for pair in list(self.cache) if pair[0] == user_key]
        return list(dict.fromkeys([*cached, *super().pairs_to_try(user_key, epoch)]))

    def delta_entries(self, keys: Iterable[Any], log: dict[Any, Any]) -> ValueEntries:
        self._settle()
        known = list(keys)
        values = list(map(self.cache.get, known, repeat(MISSING)))
        if Absent in set(map(type, values)):
            values = [self._known(key) for key in known]
        return ValueEntries.of_changed(known, values, lambda key: log[key] is not None)

    def written(self, keys: list[Any]) -> tuple[list[Any], ...]:
        cache = self.cache
        present = [key for key in keys if cache[key] is not None]
        return present, [cache[key] for key in present]

    def full_entries(self, group: int) -> Iterator[ValueEntries]:
        for rows in in_pieces(self._rows(group), lambda row: row[2]):
            yield ValueEntries([row[0] for row in rows], [row[1] for row in rows])

    def _rows(self, group: int) -> Iterator[tuple[Any, Any, int]]:
        """Yield (key, value, size) of a key group."""
        self.flush()
        changed, cache = self.changed, self.cache
        for address, data in self._database.scan(self._heads[group]):
            key = self._key_in(address, data)
            if key not in changed:
                yield key, self._database.loads(data), len(data)
        if changed:
            for key in self.by_key_group(changed).get(group, ()):
                if cache[key] is not None:
                    yield key, cache[key], 0

    def load_entries(self, entries: ValueEntries) -> Changes:
        changes: Changes = [(self._address(key), self._head(key, value)) for key, value in entries.rows()]
        changes += [(self._address(key), None) for key in entries.deleted]
        return changes

    def loaded(self) -> None:
        super().loaded()
        self._forget_notes()
        self._clean.clear()
        self._empty = False
