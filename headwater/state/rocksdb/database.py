"""One RocksDB database: the local, disposable copy of one backend's state.

Keys, all numbers big-endian:

    key group (2) | state id (2) | part (1) | ...      entries; a key group is one range, whatever the state
    0xfffe        | ...                                timers in the order of firing (timer_entries.py)
    0xffff        | name                               facts about the database

There is no write-ahead log: durability comes from snapshots, and nobody opens a database again after a crash.
"""

from __future__ import annotations

import logging
import os
import pickle
import shutil
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from rocksdict import AccessType, Checkpoint, Options, Rdict, ReadOptions, WriteBatch, WriteOptions

from headwater.common.errors import StateError
from headwater.state.restricted import StandIns
from headwater.state.rocksdb.values import PlainValues, ValueReader

log = logging.getLogger(__name__)

_FORMAT: Final = 1
_READABLE: Final = (1, 2)
_META: Final = b"\xff\xff"
_FACTS: Final = "database"
_WRITE_SIZE: Final = 4096
"""Entries per write. rocksdict holds the interpreter lock while it writes; other threads run between the writes."""

HEAD: Final = 0
"""The part of a state with one entry per key: the value, or the head of a list or map."""
BODY: Final = 1
"""The part of a state with many entries per key: pieces of a list, entries of a map."""

_pack_prefix = struct.Struct(">HHB").pack
PREFIX_LENGTH: Final = 5

Changes = list[tuple[bytes, bytes | None]]
"""[(key, value; None to delete)]"""


def prefix(group: int, state_id: int, part: int) -> bytes:
    """Return the prefix of the keys of one part of a state in one key group."""
    return _pack_prefix(group, state_id, part)


def successor(start: bytes) -> bytes:
    """Return the first key after all keys that begin with `start`."""
    stripped = start.rstrip(b"\xff")
    return stripped[:-1] + bytes((stripped[-1] + 1,))


class Database:
    """A map of bytes to bytes. Any thread may call `get`."""

    def __init__(self, path: Path, options: Options, *, read_only: bool = False) -> None:
        self.path = path
        access = AccessType.read_only(error_if_log_file_exist=False) if read_only else AccessType.read_write()
        try:
            self._rdict = Rdict(str(path), options, access_type=access)
        except Exception as error:
            raise StateError(
                f"the RocksDB database in {path} cannot be opened ({error}); "
                f"it must be the whole of a native checkpoint or an empty directory"
            ) from error
        without_log = WriteOptions()
        without_log.disable_wal = True  # type: ignore[assignment,method-assign]  # a property, whatever the stubs say
        self._rdict.set_write_options(without_log)
        self.read_with(PlainValues())
        self.get: Callable[[Any], Any] = self._rdict.get
        """`get(key)` returns the value or None; `get([key, ...])` returns a list of them."""

    def read_with(self, values: ValueReader) -> None:
        """Use `values` to unpickle values from now on."""
        self.loads: Callable[[bytes], Any] = values.loads
        self.key_behind: Callable[[bytes], Any] = values.key_behind

    def scan(self, start: bytes, after: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries whose keys begin with `start`, in order; with `after`, only those behind that key.

        Does not see writes that happen while the caller iterates.
        """
        bounds = ReadOptions()  # the local keeps it alive: the iterator needs it, and rocksdict holds no reference
        bounds.set_iterate_upper_bound(successor(start))
        entries = self._rdict.iter(bounds)
        entries.seek(start if after is None else after + b"\0")
        valid, key, value, step = entries.valid, entries.key, entries.value, entries.next
        while valid():
            yield key(), value()
            step()
        try:
            entries.status()
        except Exception as error:  # the scan stopped before the end
            raise StateError(
                f"the RocksDB database in {self.path} cannot be read ({error}); restore an intact checkpoint"
            ) from error

    def view(self) -> DatabaseView:
        """Return the database as it is now. It keeps old files and memory from being freed, until it is dropped."""
        return DatabaseView(self, self._rdict.iter())

    def last(self, start: bytes) -> bytes | None:
        """Return the value of the last entry whose key begins with `start`; None if there is none."""
        entries = self._rdict.iter()
        entries.seek_for_prev(successor(start))  # this key itself does not begin with `start`
        while entries.valid() and entries.key() >= successor(start):
            entries.prev()
        found: bytes | None = entries.value() if entries.valid() and entries.key().startswith(start) else None
        return found

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Apply `changes` in order. Not atomic: readers in other threads need a lock."""
        batch = WriteBatch(raw_mode=True)
        size = 0
        for key, value in changes:
            if value is None:
                del batch[key]
            else:
                batch[key] = value
            size += 1
            if size == _WRITE_SIZE:
                self._rdict.write(batch)
                batch, size = WriteBatch(raw_mode=True), 0
        if size:
            self._rdict.write(batch)

    def facts(self) -> dict[str, Any]:
        """Return the last `set_facts`; {} for a new database. Raises `StateError` if its format is unknown."""
        raw = self.meta(_FACTS)
        if raw is None:
            return {}
        facts: dict[str, Any] = StandIns().loads(raw)  # plain values; whoever only looks has no better reader
        if facts["format"] not in _READABLE:
            raise StateError(
                f"the RocksDB database in {self.path} has format {facts['format']!r}, expected one of {_READABLE}; "
                f"it was written by another version of headwater"
            )
        return facts

    def set_facts(self, facts: dict[str, Any]) -> None:
        """Store plain values in the database: its operator, and the ids of its states.

        A "format" among them makes older versions of headwater refuse the database.
        """
        self.set_meta(_FACTS, pickle.dumps({"format": _FORMAT, **facts}, 5))

    def meta(self, name: str) -> bytes | None:
        found: bytes | None = self.get(_META + name.encode())
        return found

    def set_meta(self, name: str, content: bytes | None) -> None:
        """Store `content` under `name`. Writes nothing if it is there already: that would make checkpoints larger."""
        if self.meta(name) != content:
            self.write([(_META + name.encode(), content)])

    def meta_names(self, start: str) -> list[str]:
        return [key[len(_META) :].decode() for key, _ in self.scan(_META + start.encode())]

    def checkpoint(self, directory: Path) -> None:
        """Copy the database to the new `directory`, which must not exist. Immutable files become links, or copies if
        `directory` is on another disk."""
        Checkpoint(self._rdict).create_checkpoint(str(directory))

    def close(self) -> None:
        """Close all files. Write errors do not matter any more: nobody opens the database again."""
        try:
            self._rdict.close()
        except Exception as error:  # a disk error: it closed nothing, so drop the last references, which closes all
            log.warning("the RocksDB database in %s was given up: %s", self.path, error)
            del self._rdict, self.get


class DatabaseView:
    """The database as it was at one moment. Any thread may use it.

    It is an iterator that stays open: rocksdict's snapshots do not apply to iterators.
    """

    def __init__(self, database: Database, entries: Any) -> None:
        self.loads = database.loads
        self.key_behind = database.key_behind
        self._entries = entries
        self._lock = threading.Lock()

    def get(self, key: Any) -> Any:
        """As `Database.get`: the value of a key or None, or a list of them for a list of keys."""
        if isinstance(key, list):
            return list(map(self.get, key))
        entries = self._entries
        with self._lock:
            entries.seek(key)
            return entries.value() if entries.valid() and entries.key() == key else None

    def scan(self, start: bytes) -> list[tuple[bytes, bytes]]:
        """Return the entries whose keys begin with `start`, in order."""
        found: list[tuple[bytes, bytes]] = []
        entries = self._entries
        with self._lock:
            entries.seek(start)
            while entries.valid() and (key := entries.key()).startswith(start):
                found.append((key, entries.value()))
                entries.next()
            entries.status()
        return found


def take_over(checkpoint: Path, directory: Path) -> None:
    """Fill the empty `directory` with a checkpoint's files: links to immutable files, copies of the others."""
    for source in checkpoint.iterdir():
        target = directory / source.name
        if source.suffix == ".sst":
            try:
                os.link(source, target)
                continue
            except OSError:  # another disk, or a file system without links
                pass
        if source.name != "LOCK":
            shutil.copyfile(source, target)
