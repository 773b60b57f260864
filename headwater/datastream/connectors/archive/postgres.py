"""An archive in PostgreSQL. Needs psycopg: `pip install headwater[postgres]`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.datastream.connectors.archive.sql_store import MARK, REPLACE, SqlStore
from headwater.datastream.connectors.archive.store import Archive, ArchiveStore, PreparedRows

_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS headwater_writers (writer bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
    "series text NOT NULL, job_id text NOT NULL, UNIQUE (series, job_id))",
    "CREATE TABLE IF NOT EXISTS headwater_commits (writer bigint NOT NULL REFERENCES headwater_writers, "
    "partition integer NOT NULL, epoch bigint NOT NULL, PRIMARY KEY (writer, partition))",
    # json, not jsonb: it keeps a value's text as it is, so 1.0 stays a float.
    "CREATE TABLE IF NOT EXISTS headwater_windows (series text NOT NULL, key text NOT NULL, start_ms bigint NOT NULL, "
    "end_ms bigint NOT NULL, value json NOT NULL, writer bigint NOT NULL REFERENCES headwater_writers, "
    "epoch bigint NOT NULL, PRIMARY KEY (series, key, start_ms, end_ms))",
)
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('headwater series ' || %s, 0))"
"""One committer of a series at a time, also before its first row is there."""
_STAGE: Final = (
    "CREATE TEMPORARY TABLE headwater_prepared (key text, start_ms bigint, end_ms bigint, value text, epoch bigint) "
    "ON COMMIT DROP"
)
_COPY: Final = "COPY headwater_prepared (key, start_ms, end_ms, value, epoch) FROM STDIN"
_UPSERT: Final = (
    "INSERT INTO headwater_windows (series, key, start_ms, end_ms, value, writer, epoch) "
    f"SELECT %s, key, start_ms, end_ms, value::json, %s, epoch FROM headwater_prepared {REPLACE}"
)


class PostgresArchive(Archive):
    """The database that `conninfo` names, as libpq understands it: `host=db dbname=metrics user=headwater`.

    The tables are in the first schema of the search path that can be written. Keep passwords out of programs: libpq
    finds them in `~/.pgpass` or `PGPASSWORD` of the driver, the only process that connects.
    """

    def __init__(self, conninfo: str) -> None:
        if not isinstance(conninfo, str) or not conninfo.strip():
            raise ConfigurationError(
                f"PostgresArchive() expects a connection string such as 'host=db dbname=metrics', found {conninfo!r}"
            )
        self._conninfo = conninfo

    def open(self) -> ArchiveStore:
        return PostgresStore(self.connect(), self.describe())

    def describe(self) -> str:
        psycopg = _psycopg()
        parts = psycopg.conninfo.conninfo_to_dict(self._conninfo)
        return f"PostgreSQL database {parts.get('dbname', '')!s} at {parts.get('host', 'the default host')!s}"

    def connect(self) -> Any:
        """Return a new connection with the tables in place."""
        psycopg = _psycopg()
        try:
            connection = psycopg.connect(self._conninfo, autocommit=True, application_name="headwater archive")
        except psycopg.OperationalError as error:
            # No HeadwaterError: a server that restarts is there again soon, and commits are tried again.
            raise ConnectionError(f"archive in {self.describe()} cannot be reached: {error}") from None
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('headwater archive', 0))")
                for statement in _SCHEMA:
                    connection.execute(statement)
        except BaseException:
            connection.close()
            raise
        return connection


def _psycopg() -> Any:
    try:
        import psycopg
        import psycopg.conninfo
    except ImportError:
        raise ConfigurationError(
            "PostgresArchive needs psycopg, which is not installed: pip install 'headwater[postgres]'"
        ) from None
    return psycopg


class PostgresStore(SqlStore):
    """A connection."""

    def __init__(self, connection: Any, where: str) -> None:
        self._connection = connection
        self._where = where

    def commit(self, prepared: list[PreparedRows]) -> None:
        series, connection = prepared[0].series, self._connection
        with self._told(), connection.transaction():
            connection.execute(_LOCK, (series,))
            writer, plan = self._begin_commit(prepared)
            connection.execute(_STAGE)
            with connection.cursor() as cursor:
                with cursor.copy(_COPY) as copy:
                    for row in plan.rows:
                        copy.write_row(row)
                cursor.execute(_UPSERT, (series, writer))
                cursor.executemany(MARK, [(writer, partition, epoch) for partition, epoch in plan.epochs.items()])

    def close(self) -> None:
        self._connection.close()

    def _query(self, statement: str, arguments: tuple[Any, ...]) -> list[Any]:
        with self._told():
            rows: list[Any] = self._connection.execute(statement, arguments).fetchall()
        return rows

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the database say which one. They may pass with time, so they are no HeadwaterError."""
        try:
            yield
        except HeadwaterError:
            raise
        except _psycopg().Error as error:
            raise ConnectionError(f"archive in {self._where}: {type(error).__name__}: {error}") from error
