"""An archive in one file: SQLite. For one machine; readers and the job do not wait for each other."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from typing import Any, Final

from headwater.checkpoint.storage.durable_file import make_directories
from headwater.common.errors import CheckpointError, ConfigurationError, HeadwaterError, LocalDiskError
from headwater.datastream.connectors.archive.sql_store import MARK, REPLACE, SqlStore
from headwater.datastream.connectors.archive.store import Archive, ArchivedWindow, ArchiveStore, PreparedRows

LOCK_SECONDS: Final = 5.0
"""How long a commit waits for another process that writes to the file."""

_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS headwater_writers (writer INTEGER PRIMARY KEY, series TEXT NOT NULL, "
    "job_id TEXT NOT NULL, UNIQUE (series, job_id))",
    "CREATE TABLE IF NOT EXISTS headwater_commits (writer INTEGER NOT NULL, partition INTEGER NOT NULL, "
    "epoch INTEGER NOT NULL, PRIMARY KEY (writer, partition)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS headwater_windows (series TEXT NOT NULL, key TEXT NOT NULL, start_ms INTEGER NOT NULL, "
    "end_ms INTEGER NOT NULL, value TEXT NOT NULL, writer INTEGER NOT NULL, epoch INTEGER NOT NULL, "
    "PRIMARY KEY (series, key, start_ms, end_ms)) WITHOUT ROWID",
)
_UPSERT: Final = (
    "INSERT INTO headwater_windows (series, key, start_ms, end_ms, value, epoch, writer) VALUES (?, ?, ?, ?, ?, ?, ?) "
    f"{REPLACE}"
)


class SqliteArchive(Archive):
    """The file at `path`; it is made if it is missing. It must be on a local disk of the driver's machine."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = os.fspath(path)
        if not isinstance(name, str) or not name or name.startswith((":memory:", "file:")) or "\0" in name:
            raise ConfigurationError(f"SqliteArchive() expects the path of a file, found {path!r}")
        self.path = os.path.abspath(name)

    def open(self) -> ArchiveStore:
        return SqliteStore(self.connect(), self.path)

    def describe(self) -> str:
        return f"SQLite file {self.path}"

    def connect(self) -> sqlite3.Connection:
        """Return a new connection that any thread may use, one at a time."""
        with _told(self.path):
            make_directories(os.path.dirname(self.path))
            connection = sqlite3.connect(self.path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False)
            try:
                _prepare(connection)
            except BaseException:
                connection.close()
                raise
        return connection


def _prepare(connection: sqlite3.Connection) -> None:
    # With a write-ahead log readers see whole commits while one is written. FULL syncs that log at every commit:
    # the default of that mode would lose the last commits in a power cut, which the checkpoint counts as done.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if len(found & {"headwater_writers", "headwater_commits", "headwater_windows"}) < len(_SCHEMA):
        with _transaction(connection):
            for statement in _SCHEMA:
                connection.execute(statement)


class SqliteStore(SqlStore):
    """An open file."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._path = path
        self._file = _identity(path)

    def commit(self, prepared: list[PreparedRows]) -> None:
        series, connection = prepared[0].series, self._connection
        self._check_file()
        with _told(self._path), _transaction(connection):
            writer, plan = self._begin_commit(prepared)
            connection.executemany(_UPSERT, ((series, *row, writer) for row in plan.rows))
            marks = ((writer, partition, epoch) for partition, epoch in plan.epochs.items())
            connection.executemany(_own_style(MARK), marks)

    def close(self) -> None:
        self._connection.close()

    def read(self, series: str, key: str, from_ms: int, to_ms: int, most: int) -> list[ArchivedWindow]:
        self._check_file()
        return super().read(series, key, from_ms, to_ms, most)

    def _check_file(self) -> None:
        """A file that was deleted can be written to for as long as it is open: all that would be lost in silence."""
        if _identity(self._path) != self._file:
            raise CheckpointError(
                f"archive {self._path} was deleted or replaced while it was open; put it back, with its -wal file, and "
                f"start the job again"
            )

    def _query(self, statement: str, arguments: tuple[Any, ...]) -> list[Any]:
        with _told(self._path):
            return self._connection.execute(_own_style(statement), arguments).fetchall()


def _identity(path: str) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return found.st_dev, found.st_ino
    return None


def _own_style(statement: str) -> str:
    return statement.replace("%s", "?")


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Take the write lock at once: what is read in the block stays true until its end."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # SQLite has rolled back itself if the disk is full
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    """Errors of SQLite become errors that say which file, what is wrong and what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _explained(error, path) from error


def _explained(error: sqlite3.DatabaseError, path: str) -> HeadwaterError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LocalDiskError(
            f"archive {path} is locked by another process for more than {LOCK_SECONDS:g} s ({error}); end its "
            f"transaction: a shell of sqlite3 with an open BEGIN, a backup, or a second job"
        )
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return LocalDiskError(f"archive {path} cannot be written: {error}; make room there, or look after the disk")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return CheckpointError(
            f"archive {path} is damaged or no SQLite file ({error}); restore it from a copy, or name another file"
        )
    return ConfigurationError(f"archive {path} cannot be used: {error}; expected a file that this user can write")
