"""Value state in RocksDB. What is in the cache costs little more than on the heap."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

from headwater.state.api import ValueState
from headwater.state.copying import ATOMIC, is_immutable
from headwater.state.heap_store import ABSENT, Keep, KeyScope
from headwater.state.payload import PROTOCOL
from headwater.state.rocksdb_database import Changes
from headwater.state.rocksdb_keys import INT, MAX_INT, MIN_INT, pack_int
from headwater.state.rocksdb_store import KEY_FOLLOWS, MISSING, RocksStore, StoreOwner, in_pieces
from headwater.state.rocksdb_values import OF_A_CLASS


class RocksValueState(RocksStore, ValueState[Any]):
    """Head: the value. Cache {key: value, or None}; changed {key: whether there was a value, None if not known}."""

    def __init__(self, owner: StoreOwner, scope: KeyScope, name: str, state_id: int, namespaced: bool) -> None:
        super().__init__(owner, scope, name, state_id, namespaced)
        self._removed: set[Any] = set()
        """Those of `changed` that have no value now."""
        self._unsettled = False
        """Whether `changed` may have what is not known."""

    def value(self) -> Any:
        key = self._scope.current_key
        value = self.cache.get(key, MISSING)
        if value is MISSING:
            value = self._read(key)
        if value.__class__ in ATOMIC or key in self.changed or is_immutable(value):
            return value
        self.changed[key] = True  # the caller may change it in place
        return value

    def update(self, value: Any) -> None:
        key = self._scope.current_key
        if key not in self.changed:
            before = self.cache.get(key, MISSING)
            if before is MISSING:
                self.changed[key] = None
                self._unsettled = True
            else:
                self.changed[key] = before is not None
        self.cache[key] = value
        if value is None:
            self._removed.add(key)
        elif self._removed:
            self._removed.discard(key)

    def clear(self) -> None:
        self.update(None)

    def peek(self) -> Any:
        """The value for looking only: it does not count as touched, and must not be changed nor handed to a user."""
        return self._known(self._scope.current_key)

    def prefetch(self, keys: Iterable[Any]) -> None:
        """Read the values of `keys` that are not in the cache: in the order of the database, at a third of the cost."""
        cache, loads = self.cache, self._database.loads
        unknown: dict[bytes, Any] = {}
        for group, members in self.by_key_group({key: None for key in keys if key not in cache}).items():
            start = self._heads[group]
            unknown.update((start + self._encode(key)[0], key) for key in members)
        if len(cache) + len(unknown) > self._room:
            self._make_room(len(unknown))
        addresses = sorted(unknown)
        for first in range(0, len(addresses), 1000):
            some = addresses[first : first + 1000]
            for address, data in zip(some, self._database.get(some), strict=True):
                cache[unknown[address]] = None if data is None else loads(data)

    def _known(self, key: Any) -> Any:
        value = self.cache.get(key, MISSING)
        return self._read(key) if value is MISSING else value

    def _read(self, key: Any) -> Any:
        data = self._database.get(self._address(key))
        if data is None:
            value = None
        else:
            value = self._database.loads(data)
            self._note_size(len(data))
        if len(self.cache) >= self._room:
            self._make_room()
        self.cache[key] = value
        return value

    def has(self, key: Any) -> bool:
        return self._known(key) is not None

    def count(self) -> int:
        self._settle()
        return self.stored_count() + list(self.changed.values()).count(False) - len(self._removed)

    def _settle(self) -> None:
        """Find out what was there before where the epoch wrote without reading."""
        if self._unsettled:
            changed = self.changed
            unknown = [key for key, existed in changed.items() if existed is None]
            for key, data in zip(unknown, self._database.get(list(map(self._address, unknown))), strict=True):
                changed[key] = data is not None
            self._unsettled = False

    def collect(self) -> Changes:
        changes: Changes = []
        cache, changed, dumps = self.cache, self.changed, pickle.dumps
        plain = not self.pickler.meets_classes
        count = self.count()
        for group, keys in self.by_key_group(changed).items():
            start = self._heads[group]
            for key in keys:
                if key.__class__ is int and MIN_INT <= key <= MAX_INT:
                    encoded, says_all = pack_int(INT, key), True
                else:
                    encoded, says_all = self._encode(key)
                value = cache[key]
                if value is None:
                    if changed[key]:
                        changes.append((start + encoded, None))
                    continue
                try:
                    data = dumps(value, PROTOCOL) if plain else OF_A_CLASS
                except Exception:
                    data = OF_A_CLASS
                if OF_A_CLASS in data:
                    data = self._dumps(value)
                changes.append((start + encoded, data if says_all else data + self._dumps(key) + KEY_FOLLOWS))
        self._count = count
        self._note_sizes(changes)
        return changes

    def committed_now(self, *, cut: bool) -> None:
        super().committed_now(cut=cut)
        self._removed.clear()

    def rollback(self) -> None:
        super().rollback()
        self._removed.clear()

    def committed(self, key: Any) -> Any:
        data = self._database.get(self._address(key))
        return ABSENT if data is None else self._database.loads(data)

    def delta_entries(self, keys: Iterable[Any], log: dict[Any, Any]) -> tuple[Any, ...]:
        """(keys, values, deleted keys)"""
        self._settle()
        present: list[Any] = []
        values: list[Any] = []
        deleted: list[Any] = []
        for key in keys:
            value = self._known(key)
            if value is not None:
                present.append(key)
                values.append(value)
            elif log[key]:
                deleted.append(key)
        return present, values, deleted

    def written(self, keys: list[Any]) -> tuple[list[Any], ...]:
        cache = self.cache
        present = [key for key in keys if cache[key] is not None]
        return present, [cache[key] for key in present]

    def full_entries(self, group: int, keep: Keep | None) -> Iterator[tuple[Any, ...]]:
        for rows in in_pieces(self._rows(group), lambda row: row[2]):
            kept = rows if keep is None else [row for row in rows if keep(row[1])]
            yield [row[0] for row in kept], [row[1] for row in kept], []

    def _rows(self, group: int) -> Iterator[tuple[Any, Any, int]]:
        """(key, value, size) of a key group."""
        changed, cache = self.changed, self.cache
        for address, data in self._database.scan(self._heads[group]):
            key = self._key_in(address, data)
            if key not in changed:
                yield key, self._database.loads(data), len(data)
        if changed:
            for key in self.by_key_group(changed).get(group, ()):
                if cache[key] is not None:
                    yield key, cache[key], 0

    def load_entries(self, entries: tuple[Any, ...]) -> Changes:
        keys, values, deleted = entries
        changes: Changes = [
            (self._address(key), self._head(key, value)) for key, value in zip(keys, values, strict=True)
        ]
        changes += [(self._address(key), None) for key in deleted]
        return changes

    def loaded(self) -> None:
        super().loaded()
        self._removed.clear()
