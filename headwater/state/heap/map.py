"""Map state on the heap. Undo log and delta are per entry: one change in a map of a million writes one entry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from headwater.state.api import MapState
from headwater.state.change_log import Combine, Join
from headwater.state.copying import ATOMIC, are_immutable, captured, protective_copy
from headwater.state.heap.store import ABSENT, UNCHANGED, HeapStore
from headwater.state.keys.stable_hash import PLAIN_KEYS, check_map_key
from headwater.state.snapshot.entries import MapEntries

_EMPTY: dict[Any, Any] = {}


class _Whole(NamedTuple):
    """In the undo log: the whole map before ({}: there was none), instead of a log per entry."""

    before: dict[Any, Any]


_NEW = _Whole({})
"""There was no map."""


class HeapMapState(HeapStore, MapState[Any, Any]):
    """{key: {map key: value}}, never an empty map; undo {key: {map key: value before, or ABSENT} | _Whole}."""

    __slots__ = ()

    def get(self, key: Any) -> Any:
        value = self.table.get(self._scope.current_key, _EMPTY).get(key)
        return protective_copy(value) if self.holds_mutable else value

    def put(self, key: Any, value: Any) -> None:
        if value.__class__ not in ATOMIC:
            value = self.owned(value)
        if key.__class__ not in ATOMIC:
            key = self.owned(key)
        owner = self._scope.current_key
        entries = self.table.get(owner)
        if key.__class__ not in PLAIN_KEYS and (entries is None or key not in entries):
            check_map_key(key)
        log = self.undo.get(owner)
        if log is None:
            log = self.undo[owner] = {} if entries is not None else _NEW
        if entries is None:
            entries = self.table[owner] = {}
        if log.__class__ is dict and key not in log:
            log[key] = entries.get(key, ABSENT)
        entries[key] = value

    def update_all(self, owners: Sequence[Any], keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Store an entry in the map of each owner, or (None) remove it; see `headwater.state.many_keys`."""
        table, undo = self.table, self.undo
        self.unshared = True
        for owner, key, value in zip(owners, keys, values, strict=True):
            entries, log = table.get(owner), undo.get(owner)
            if entries is None:
                if value is None:
                    continue
                if log is None:
                    undo[owner] = _NEW
                elif log.__class__ is dict:
                    log.setdefault(key, ABSENT)
                table[owner] = {key: value}
                continue
            if log is None:
                log = undo[owner] = {key: entries.get(key, ABSENT)}
            elif log.__class__ is dict and key not in log:
                log[key] = entries.get(key, ABSENT)
            if value is not None:
                entries[key] = value
            elif entries.pop(key, None) is not None:
                if not entries:
                    del table[owner]
                if log.__class__ is dict and log[key] is ABSENT:
                    self._note_gone()

    def put_all(self, dict_value: dict[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        for key, value in dict(dict_value).items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        owner = self._scope.current_key
        entries = self.table.get(owner)
        if entries is None or key not in entries:
            return
        self._log_entry(owner, captured(key), entries[key])
        del entries[key]
        if not entries:
            del self.table[owner]
        log = self.undo[owner]
        if log.__class__ is dict and log[key] is ABSENT:
            self._note_gone()

    def contains(self, key: Any) -> bool:
        return key in self.table.get(self._scope.current_key, _EMPTY)

    def items(self) -> list[tuple[Any, Any]]:
        return self._handed_out(list(self.table.get(self._scope.current_key, _EMPTY).items()))

    def keys(self) -> list[Any]:
        return self._handed_out(list(self.table.get(self._scope.current_key, _EMPTY)))

    def values(self) -> list[Any]:
        return self._handed_out(list(self.table.get(self._scope.current_key, _EMPTY).values()))

    def is_empty(self) -> bool:
        return self._scope.current_key not in self.table

    def clear(self) -> None:
        owner = self._scope.current_key
        entries = self.table.get(owner)
        if entries is None:
            return
        log = self.undo.get(owner)
        if log is None or log.__class__ is dict:
            self.undo[owner] = _Whole(_before(entries, log))
        del self.table[owner]

    def peek(self) -> dict[Any, Any]:
        """Return the live map. The caller must not change it, nor hand it to a user."""
        entries: dict[Any, Any] = self.table.get(self._scope.current_key, _EMPTY)
        return entries

    def _forget_gone(self) -> None:
        for owner, log in self.undo.items():
            if log.__class__ is dict:
                entries = self.table.get(owner, _EMPTY)
                self.undo[owner] = {key: old for key, old in log.items() if old is not ABSENT or key in entries}

    def _log_entry(self, owner: Any, key: Any, before: Any) -> None:
        log = self.undo.get(owner)
        if log is None:
            self.undo[owner] = {key: before}
        elif log.__class__ is dict and key not in log:
            log[key] = before

    def _handed_out(self, found: list[Any]) -> list[Any]:
        return protective_copy(found) if self.holds_mutable else found

    def rollback(self) -> None:
        for owner, log in self.undo.items():
            before = _before(self.table.get(owner, _EMPTY), log, in_place=True)
            if before:
                self.table[owner] = before
            else:
                self.table.pop(owner, None)
        self.undo, self._spanning = {}, None

    def _combination(self) -> Combine:
        return _combined

    def current(self, key: Any) -> Any:
        # dict.copy() keeps the interpreter lock, so the log, read next, has at least the changes in the copy.
        return self.table.get(key, _EMPTY).copy() or ABSENT

    def before(self, key: Any, entry: Any, log: dict[Any, Any]) -> Any:
        changes = log.get(key, UNCHANGED)
        if changes is UNCHANGED:
            return entry
        entries = {} if entry is ABSENT else entry
        return _before(entries, changes.copy() if changes.__class__ is dict else changes) or ABSENT

    def delta_entries(self, keys: Iterable[Any], log: dict[Any, Any]) -> MapEntries:
        owners: list[Any] = []
        maps: list[dict[Any, Any]] = []
        removed: list[list[Any] | None] = []
        deleted: list[Any] = []
        for owner in keys:
            change = log[owner]
            entries = self.table.get(owner)
            if entries is None:
                if change.__class__ is dict or change.before:
                    deleted.append(owner)
                continue
            owners.append(owner)
            if change.__class__ is not dict:
                maps.append(entries)
                removed.append(None)
            else:
                maps.append({key: entries[key] for key in change if key in entries})
                removed.append([key for key, old in change.items() if old is not ABSENT and key not in entries])
        return MapEntries(owners, maps, removed, deleted)

    def written(self, keys: list[Any]) -> tuple[list[Any], ...]:
        owners: list[Any] = []
        map_keys: list[Any] = []
        values: list[Any] = []
        for owner in keys:
            log, entries = self.undo[owner], self.table.get(owner, _EMPTY)
            changed = [key for key in log if key in entries] if log.__class__ is dict else list(entries)
            owners += [owner] * len(changed)
            map_keys += changed
            values += [entries[key] for key in changed]
        return owners, map_keys, values

    def full_entries(self, keys: Iterable[Any]) -> MapEntries:
        owners = list(keys)
        return MapEntries.of_maps(owners, list(map(self.table.__getitem__, owners)))

    def load_entries(self, entries: MapEntries) -> None:
        parts = chain(entries.maps, (each.values() for each in entries.maps))
        self.holds_mutable = self.holds_mutable or not all(map(are_immutable, parts))
        for owner, changed, removed in entries.rows():
            if removed is None:
                self.table[owner] = changed
                continue
            known = self.table.setdefault(owner, {})
            known.update(changed)
            for key in removed:
                known.pop(key, None)
            if not known:
                del self.table[owner]
        for owner in entries.deleted:
            self.table.pop(owner, None)


def _combined(owner: Any, older: Any, newer: Any, join: Join) -> Any:
    if older.__class__ is not dict:
        return older
    # The newer log has the whole map before the replacement: apply the older log to it, entry by entry.
    return join(older, newer) if newer.__class__ is dict else _Whole(_before(newer.before, older))


def _before(entries: dict[Any, Any], log: Any, in_place: bool = False) -> dict[Any, Any]:
    """Return the map before the changes in `log` (None: no changes)."""
    if log is None:
        return entries
    if log.__class__ is not dict:
        whole: dict[Any, Any] = log.before
        return whole
    before = entries if in_place and entries is not _EMPTY else dict(entries)
    for key, value in log.items():
        if value is ABSENT:
            before.pop(key, None)
        else:
            before[key] = value
    return before
