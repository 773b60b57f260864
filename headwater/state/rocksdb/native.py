"""Reads a native checkpoint as sections: for another parallelism, the heap backend, savepoints and tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from headwater.state.keyed_backend import NO_KEY
from headwater.state.restricted import StandIns
from headwater.state.rocksdb.database import Changes, Database, DatabaseView
from headwater.state.rocksdb.facts import Facts, timer_sections
from headwater.state.rocksdb.options import RocksDBMemory
from headwater.state.rocksdb.stores import STORES
from headwater.state.rocksdb.timer_entries import TimerEntries
from headwater.state.rocksdb.values import StoredValues
from headwater.state.snapshot import payload as codec
from headwater.state.snapshot.layout import StateLayout
from headwater.state.snapshot.section import KEYED, Section
from headwater.state.timers import timer_section

_MEMORY_BYTES = 32 << 20


class _Reader:
    """A read-only `StoreOwner` for the database of a native checkpoint."""

    log_changes = False
    current_key: Any = NO_KEY

    def __init__(self, directory: Path, uid: str, stand_ins: StandIns | None) -> None:
        self.uid = uid
        self.memory = RocksDBMemory(_MEMORY_BYTES)
        self.database = Database(directory, self.memory.database_options(), read_only=True)
        self.facts = Facts.of(self.database)
        if stand_ins is not None:
            stand_ins.learn(self.facts.schemas())
            self.database.read_with(stand_ins)
        elif changes := self.facts.class_changes():
            self.database.read_with(StoredValues(changes))
        self.max_parallelism = self.facts.max_parallelism
        self.key_groups = range(*self.facts.key_groups)

    def write_committed(self, changes: Changes, done: Callable[[], None]) -> None:
        raise AssertionError("nothing changes here")

    def view(self, epoch: int) -> DatabaseView:
        raise AssertionError("there is one epoch only")


def native_facts(directory: Path) -> Facts:
    """Return what a native checkpoint says about itself, without changing it."""
    database = Database(directory, RocksDBMemory(_MEMORY_BYTES).database_options(), read_only=True)
    try:
        return Facts.of(database)
    finally:
        database.close()


def read_native_sections(
    directory: Path, uid: str, key_groups: range | None = None, stand_ins: StandIns | None = None
) -> Iterator[Section]:
    """All that a native checkpoint holds, as sections of operator `uid`; of `key_groups` only, if given.

    The checkpoint is not changed. What has expired and was not cleaned up is there too: the one who loads it knows the
    TTL. A key group may come in several sections of one state. With `stand_ins` no class is loaded.
    """
    reader = _Reader(directory, uid, stand_ins)
    try:
        groups = [group for group in reader.key_groups if key_groups is None or group in key_groups]
        for name, (state_id, parts) in reader.facts.states.items():
            layout = StateLayout.stored(parts)
            store = STORES[layout.kind](reader, reader, name, state_id, layout.namespaced)
            for group in groups:
                for entries in store.full_entries(group):
                    yield Section(uid, KEYED, name, group, codec.encode(layout, entries, uid, name))
        yield from timer_sections(reader.database, uid, key_groups)
        for kind in reader.facts.timers:
            timers = TimerEntries(uid, kind, reader.max_parallelism)
            for group in groups:
                for rows in timers.of_group(reader.database, group):
                    yield timer_section(uid, kind, group, rows)
    finally:
        reader.database.close()
