"""Map state in RocksDB: one entry per map key, read and written without the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headwater.state.api import MapState
from headwater.state.change_log import Combine
from headwater.state.copying import captured
from headwater.state.heap.store import ABSENT, KeyScope
from headwater.state.keys.stable_hash import PLAIN_KEYS, check_map_key
from headwater.state.rocksdb.database import Changes, Database, DatabaseView
from headwater.state.rocksdb.keys import decode_key, encode_key
from headwater.state.rocksdb.store import (
    KEY_FOLLOWS,
    MISSING,
    RocksStore,
    StoreOwner,
    in_pieces,
)
from headwater.state.snapshot.entries import MapEntries

_STOP = b"."


class _Entries:
    """The known entries of one map: some or all. ABSENT: there is no such entry."""

    __slots__ = ("complete", "marked", "values")

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}
        self.complete = False
        """`values` has all entries of the map."""
        self.marked: bool | None = None
        """The database has a map for this key. None: unknown."""


class _Log:
    """What one or more epochs changed in one map."""

    __slots__ = ("existed", "keys", "whole")

    def __init__(self, existed: bool, whole: bool = False) -> None:
        self.existed = existed
        self.whole = whole
        """The map was cleared: no earlier entry is left."""
        self.keys: dict[Any, None] = {}

    def merged(self, newer: _Log) -> _Log:
        both = _Log(self.existed, self.whole or newer.whole)
        both.keys = {**self.keys, **newer.keys}
        return both


class RocksMapState(RocksStore, MapState[Any, Any]):
    """Head: a mark that the map exists. Bodies: the values. Cache {key: _Entries}; changed {key: _Log}."""

    def __init__(self, owner: StoreOwner, scope: KeyScope, name: str, state_id: int, namespaced: bool) -> None:
        super().__init__(owner, scope, name, state_id, namespaced)
        self._peeking = _Peeking(self)
        self._cached_values = 0

    def get(self, key: Any) -> Any:
        owner = self._scope.current_key
        entries = self._entries(owner)
        value = entries.values.get(key, MISSING)
        if value is MISSING:
            value = self._read(owner, entries, key)
        return None if value is ABSENT else captured(value)

    def put(self, key: Any, value: Any) -> None:
        self._put(captured(key), captured(value))

    def _put(self, key: Any, value: Any) -> None:
        owner = self._scope.current_key
        entries = self._entries(owner)
        if key.__class__ not in PLAIN_KEYS and key not in entries.values:
            check_map_key(key)
        log = self.changed.get(owner)
        if log is None:
            log = self.changed[owner] = _Log(self._marked(owner, entries))
        log.keys[key] = None
        entries.values[key] = value

    def put_all(self, dict_value: dict[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        for key, value in dict(dict_value).items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        if self.contains(key):
            self._put(captured(key), ABSENT)

    def contains(self, key: Any) -> bool:
        owner = self._scope.current_key
        entries = self._entries(owner)
        value = entries.values.get(key, MISSING)
        return (self._read(owner, entries, key) if value is MISSING else value) is not ABSENT

    def items(self) -> list[tuple[Any, Any]]:
        return [(captured(key), captured(value)) for key, value in self._live(self._scope.current_key).items()]

    def keys(self) -> list[Any]:
        return [captured(key) for key in self._live(self._scope.current_key)]

    def values(self) -> list[Any]:
        return [captured(value) for value in self._live(self._scope.current_key).values()]

    def is_empty(self) -> bool:
        return not self.has(self._scope.current_key)

    def clear(self) -> None:
        owner = self._scope.current_key
        entries = self._entries(owner)
        log = self.changed.get(owner)
        if log is None:
            if not self._marked(owner, entries):
                return
            log = self.changed[owner] = _Log(True)
        log.whole = log.existed
        log.keys.clear()
        entries.values.clear()
        entries.complete = True

    def peek(self) -> Any:
        """Return a view of the live map. The caller must not change anything in it, nor hand it to a user."""
        return self._peeking

    # -- what is known -------------------------------------------------------------------------------------------------

    def _entries(self, owner: Any) -> _Entries:
        entries: _Entries | None = self.cache.get(owner)
        if entries is None:
            if len(self.cache) >= self._room:
                self.make_room()
            entries = self.cache[owner] = _Entries()
        return entries

    def _marked(self, owner: Any, entries: _Entries) -> bool:
        """Return True if the database has a map of `owner`."""
        if entries.marked is None:
            entries.marked = self._database.get(self._address(owner)) is not None
            if not entries.marked:
                entries.complete = True
        return entries.marked

    def _read(self, owner: Any, entries: _Entries, key: Any) -> Any:
        """Read and return the value of an entry that is not known yet; ABSENT if there is none."""
        if entries.complete:
            return ABSENT
        data = self._database.get(self._body(owner) + encode_key(key)[0])
        value = ABSENT if data is None else self._database.loads(data)
        if data is not None:
            self._note_size(len(data))
        if self._cached_values > self._entries_with_room():
            self._forget_maps()
        entries.values[key] = value
        self._cached_values += 1
        return value

    def _complete(self, owner: Any) -> _Entries:
        entries = self._entries(owner)
        if not entries.complete and self._marked(owner, entries):
            known = entries.values
            # Keep the database's order: earlier reads must not change the order of results.
            values = {key: known.pop(key) if key in known else value for key, value in self._stored(owner)}
            values.update(known)
            entries.values = values
            entries.complete = True
            self._cached_values += len(values)
        return entries

    def _stored(self, owner: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the entries of a map in the database."""
        return self._stored_at(self._body(owner), self._database)

    def _stored_at(self, body: bytes, database: Database | DatabaseView) -> Iterator[tuple[Any, Any]]:
        start = len(body)
        for address, data in database.scan(body):
            key = decode_key(address, start)[0] if data.endswith(_STOP) else database.key_behind(data)
            yield key, database.loads(data)

    def has(self, key: Any) -> bool:
        entries = self._entries(key)
        for value in entries.values.values():
            if value is not ABSENT:
                return True
        if entries.complete or not self._marked(key, entries):
            return False
        known = entries.values
        return not known or any(map_key not in known for map_key, _ in self._stored(key))

    # -- epochs --------------------------------------------------------------------------------------------------------

    def count(self) -> int:
        count = self.stored_count()
        for owner, log in self.changed.items():
            count += self.has(owner) - log.existed
        return count

    def collect(self) -> Changes:
        changes: Changes = []
        count = self.count()
        for owner, log in self.changed.items():
            self._collect(owner, log, changes)
            self._cached_values += len(log.keys)
        self._count = count
        self._note_sizes(changes)
        return changes

    def _collect(self, owner: Any, log: _Log, changes: Changes) -> None:
        entries, body, present = self.cache[owner], self._body(owner), self.has(owner)
        if log.whole:
            changes += [(address, None) for address, _ in self._database.scan(body)]
        values = entries.values
        for key in log.keys:
            encoded, says_all = encode_key(key)
            value = values[key]
            if value is not ABSENT:
                data = self._dumps(value)
                changes.append((body + encoded, data if says_all else data + self._dumps(key) + KEY_FOLLOWS))
            elif log.existed and not log.whole:
                changes.append((body + encoded, None))
        if present != log.existed:
            changes.append((self._address(owner), self._head(owner, True) if present else None))
        entries.marked = present

    def committed_now(self, *, cut: bool) -> None:
        super().committed_now(cut=cut)
        if self._cached_values > self._entries_with_room():
            self._forget_maps()

    def _forget_maps(self) -> None:
        """Remove unchanged maps from the cache until three quarters of its room are used. Counts entries, not maps."""
        goal = self._entries_with_room() * 3 // 4
        held = sum(len(entries.values) + 1 for entries in self.cache.values())
        for owner in [owner for owner in self.cache if owner not in self.changed]:
            if held <= goal:
                break
            held -= len(self.cache.pop(owner).values) + 1
        self._cached_values = min(held, goal)  # changed maps stay: capped, so that not each look-up comes here

    def _combination(self) -> Combine:
        return lambda owner, older, newer, join: older.merged(newer)

    def committed(self, key: Any) -> Any:
        return self.stored_in(self._database, key)

    def stored_in(self, view: Database | DatabaseView, key: Any) -> Any:
        return dict(self._stored_at(self._body(key), view)) or ABSENT

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def delta_entries(self, keys: Iterable[Any], log: dict[Any, Any]) -> MapEntries:
        owners: list[Any] = []
        maps: list[dict[Any, Any]] = []
        removed: list[list[Any] | None] = []
        deleted: list[Any] = []
        for owner in keys:
            change = log[owner]
            if not self.has(owner):
                if change.existed:
                    deleted.append(owner)
                continue
            owners.append(owner)
            if change.whole or not change.existed:
                maps.append(self._live(owner))
                removed.append(None)
            else:
                entries = self._entries(owner)
                now = {key: self._value_now(owner, entries, key) for key in change.keys}
                maps.append({key: value for key, value in now.items() if value is not ABSENT})
                removed.append([key for key, value in now.items() if value is ABSENT])
        return MapEntries(owners, maps, removed, deleted)

    def _value_now(self, owner: Any, entries: _Entries, key: Any) -> Any:
        value = entries.values.get(key, MISSING)
        return self._read(owner, entries, key) if value is MISSING else value

    def _live(self, owner: Any) -> dict[Any, Any]:
        return {key: value for key, value in self._complete(owner).values.items() if value is not ABSENT}

    def written(self, keys: list[Any]) -> tuple[list[Any], ...]:
        owners: list[Any] = []
        map_keys: list[Any] = []
        values: list[Any] = []
        for owner in keys:
            known = self.cache[owner].values
            changed = [key for key in self.changed[owner].keys if known[key] is not ABSENT]
            owners += [owner] * len(changed)
            map_keys += changed
            values += [known[key] for key in changed]
        return owners, map_keys, values

    def full_entries(self, group: int) -> Iterator[MapEntries]:
        for rows in in_pieces(self._maps(group), lambda row: row[2]):
            yield MapEntries.of_maps([row[0] for row in rows], [row[1] for row in rows])

    def _maps(self, group: int) -> Iterator[tuple[Any, dict[Any, Any], int]]:
        """Yield (key, map, size) of a key group, without caching the maps."""
        changed = self.changed
        for address, data in self._database.scan(self._heads[group]):
            owner = self._key_in(address, data)
            if owner not in changed:
                entries = dict(self._stored_at(self._body_at(address, group), self._database))
                yield owner, entries, 64 + len(entries) * int(self._mean_bytes)
        for owner in self.by_key_group(changed).get(group, ()) if changed else ():
            entries = self._live(owner)
            if entries:
                yield owner, entries, 64 + len(entries) * int(self._mean_bytes)

    def load_entries(self, entries: MapEntries) -> Changes:
        for owner, changed, removed in entries.rows():
            self._load(owner, changed, removed)
        for owner in entries.deleted:
            self._load(owner, {}, None)
        self._count = 0
        return self.collect()

    def _load(self, owner: Any, values: dict[Any, Any], removed: Iterable[Any] | None) -> None:
        entries = self._entries(owner)
        log = self.changed[owner] = _Log(self._marked(owner, entries))
        if removed is None:
            log.whole, entries.complete = log.existed, True
        entries.values.update(values)
        entries.values.update(dict.fromkeys(removed or (), ABSENT))
        log.keys.update(dict.fromkeys(entries.values))

    def loaded(self) -> None:
        super().loaded()
        self._cached_values = 0


class _Peeking:
    """A read-only view of the current key's map. `get` reads a single entry."""

    __slots__ = ("_state",)

    def __init__(self, state: RocksMapState) -> None:
        self._state = state

    def get(self, key: Any) -> Any:
        state = self._state
        owner = state._scope.current_key
        value = state._value_now(owner, state._entries(owner), key)
        return None if value is ABSENT else value

    def items(self) -> Any:
        return self._all().items()

    def values(self) -> Any:
        return self._all().values()

    def _all(self) -> dict[Any, Any]:
        return self._state._live(self._state._scope.current_key)
