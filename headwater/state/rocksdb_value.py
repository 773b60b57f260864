"""Value state in RocksDB. What is in the cache costs little more than on the heap.

Plain values (numbers, strings, tuples of them) are not written after each epoch but when their room is needed, or
somebody reads the database as a whole: a native checkpoint, for one. Until then they are in the cache only, and a key
that changes in every epoch is written once. Durability does not depend on it: it comes from checkpoints.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from types import NoneType
from typing import Any, Final

from headwater.state.api import ValueState
from headwater.state.change_log import merged
from headwater.state.copying import ATOMIC, is_immutable
from headwater.state.heap_store import ABSENT, Absent, Keep, KeyScope
from headwater.state.payload import PROTOCOL
from headwater.state.rocksdb_database import Changes
from headwater.state.rocksdb_keys import INT, MAX_INT, MIN_INT, pack_int
from headwater.state.rocksdb_store import KEY_FOLLOWS, MISSING, SAMPLE, RocksStore, StoreOwner, in_pieces
from headwater.state.rocksdb_values import OF_A_CLASS

_PLAIN: Final = frozenset({NoneType, bool, int, float, str, bytes})
"""Exact classes of values that never change in place and can always be written."""

_PENDING_BYTES = 60
"""What it costs to know that an entry must still be written."""
_SOMETHING: Final = Absent()
"""In `changed`: there was a value, which nobody has read."""


class RocksValueState(RocksStore, ValueState[Any]):
    """Head: the value. Cache {key: value, or None}; changed {key: the value before, None, or MISSING if not known}."""

    def __init__(self, owner: StoreOwner, scope: KeyScope, name: str, state_id: int, namespaced: bool) -> None:
        super().__init__(owner, scope, name, state_id, namespaced)
        self._removed: set[Any] = set()
        """Those of `changed` that have no value now."""
        self._unsettled = False
        """Whether `changed` may have what is not known."""
        self._to_write: list[Any] = []
        """Those of `changed` whose values `collect` gave: the others become pending."""
        self._pending: set[Any] = set()
        """Keys whose committed value is not in the database: it is in the cache, or if the epoch changed it, in
        `changed`. Changes only while no query reads."""

    def value(self) -> Any:
        key = self._scope.current_key
        value = self.cache.get(key, MISSING)
        if value is MISSING:
            value = self._read(key)
        if value.__class__ in ATOMIC or key in self.changed or is_immutable(value):
            return value
        self.changed[key] = value  # the caller may change it in place: it is not a pending one
        return value

    def update(self, value: Any) -> None:
        key = self._scope.current_key
        if key not in self.changed:
            self.changed[key] = before = self.cache.get(key, MISSING)
            if before is MISSING:
                self._unsettled = True
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
            self.make_room(len(unknown))
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
            self.make_room()
        self.cache[key] = value
        return value

    def has(self, key: Any) -> bool:
        return self._known(key) is not None

    def count(self) -> int:
        self._settle()
        new = sum(1 for before in self.changed.values() if before is None)
        return self.stored_count() + new - len(self._removed)

    def _settle(self) -> None:
        """Find out what was there before where the epoch wrote without reading."""
        if self._unsettled:
            changed = self.changed
            unknown = [key for key, before in changed.items() if before is MISSING]
            for key, data in zip(unknown, self._database.get(list(map(self._address, unknown))), strict=True):
                changed[key] = None if data is None else _SOMETHING
            self._unsettled = False

    def changes(self) -> dict[Any, Any]:
        """{key: whether there was a value}"""
        return merged(self._since, self._existed())

    def _existed(self) -> dict[Any, bool]:
        self._settle()
        return {key: before is not None for key, before in self.changed.items()}

    def collect(self) -> Changes:
        self._count = self.count()
        self._to_write = []
        changed = self.changed
        values = list(map(self.cache.__getitem__, changed))
        if _are_plain(values):
            self._note_sizes(self._encoded(list(changed)[:: 1 + len(changed) // SAMPLE], self.cache))
            return []
        self._to_write = [key for key, value in zip(changed, values, strict=True) if not _are_plain((value,))]
        changes = self._encoded(self._to_write, self.cache)
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
        changed, pending = self.changed, self._pending
        came_and_went = [key for key in self._removed if changed[key] is None and key not in pending]
        pending.update(changed)
        pending.difference_update(self._to_write, came_and_went)
        self.changed = self._existed()
        super().committed_now(cut=cut)
        self._removed.clear()

    def flush(self) -> None:
        if not self._pending:
            return
        committed = {key: self._pending_value(key) for key in self._pending}
        changes = self._encoded(committed, committed)
        self._owner.write_committed(changes, self._pending.clear)
        self._note_sizes(changes)

    def _pending_value(self, key: Any) -> Any:
        value = self.cache[key]  # first: an update in the other thread notes what was there before it changes it
        before = self.changed.get(key, MISSING)
        return value if before is MISSING else before

    def _entries_with_room(self) -> int:
        return self._with_room(_PENDING_BYTES if self._pending else 0)

    def make_room(self, needed: int = 0) -> None:
        if self._pending and len(self.cache) + needed >= self._entries_with_room():
            self.flush()
        super().make_room(needed)

    def rollback(self) -> None:
        changed, pending, cache = self.changed, self._pending, self.cache
        for key, before in changed.items():
            if key in pending:
                cache[key] = before
            else:
                cache.pop(key, None)
        self.changed = {}
        self._unsettled = False
        self._removed.clear()

    def committed(self, key: Any) -> Any:
        if key in self._pending:
            value = self._pending_value(key)
            return ABSENT if value is None else value
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
        self._pending.clear()


def _are_plain(values: Collection[Any]) -> bool:
    """Whether all are plain values, or tuples of them."""
    classes = set(map(type, values))
    if tuple in classes:
        classes.discard(tuple)
        classes.update(map(type, chain.from_iterable(value for value in values if value.__class__ is tuple)))
    return classes <= _PLAIN
