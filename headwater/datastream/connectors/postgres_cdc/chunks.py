"""Reads chunks of tables, each in a short transaction that knows what it has seen. Takes no locks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from headwater.common.errors import ExternalSystemError
from headwater.datastream.connectors.cdc.progress import Chunk, Key, TableProgress
from headwater.datastream.connectors.postgres_cdc.connection import PgConnection, SqlState, lsn_number
from headwater.datastream.connectors.postgres_cdc.pgoutput import converter
from headwater.datastream.connectors.postgres_cdc.settings import CdcSettings, TableInfo, quoted, table_info
from headwater.datastream.connectors.postgres_cdc.snapshot import Visibility

UNSEEN_SECONDS: Final = 30.0
"""How long a chunk waits for a transaction that the log has shown and queries do not see."""
UNDEFINED_COLUMN: Final = "42703"


@dataclass(frozen=True)
class ChunkRows:
    """Rows of a chunk."""

    chunk: Chunk
    info: TableInfo
    stamp_ms: int
    """When they were read."""
    raw: list[list[bytes | None]]

    def values(self) -> Iterator[list[Any]]:
        converters = [converter(kind) for kind in self.info.types]
        for row in self.raw:
            yield [None if each is None else convert(each) for convert, each in zip(converters, row, strict=True)]


class ChunkReader:
    """Has a connection of its own, beside the log's."""

    def __init__(self, settings: CdcSettings) -> None:
        self._settings = settings
        self._connection: PgConnection | None = None
        self._infos: dict[str, TableInfo] = {}

    def connection(self) -> PgConnection:
        if self._connection is None:
            self._connection = self._settings.connect()
        return self._connection

    def info(self, name: str) -> TableInfo:
        """What the table is like, as far as is known."""
        if name not in self._infos:
            self._infos[name] = table_info(self._settings, self.connection(), name)
        return self._infos[name]

    def forget(self, name: str) -> None:
        """The table may have changed."""
        self._infos.pop(name, None)

    def read(self, name: str, progress: TableProgress, limit: int, unseen: frozenset[int]) -> ChunkRows:
        """Read the next rows of a table, in a transaction that sees all of `unseen`."""
        try:
            return self._read(name, progress, limit, unseen)
        except SqlState as error:
            if error.state != UNDEFINED_COLUMN:
                raise
            self.forget(name)  # a column was dropped
            self.connection().query("ROLLBACK")
            return self._read(name, progress, limit, unseen)

    def _read(self, name: str, progress: TableProgress, limit: int, unseen: frozenset[int]) -> ChunkRows:
        connection, info = self.connection(), self.info(name)
        order = info.order_by()
        where, values = "", []
        if progress.last is not None:
            where = f"WHERE ({', '.join(order)}) > ({', '.join(f'${n + 1}' for n in range(len(order)))})"
            values = [_literal(part) for part in progress.last]
        columns = ", ".join(map(quoted, info.columns))
        visibility, stamp_ms = self._begin(connection, unseen)
        rows = connection.query(
            f"SELECT {columns} FROM {info.quoted} {where} ORDER BY {', '.join(order)} LIMIT {limit}", *values
        )
        ended = connection.one("SELECT pg_current_wal_insert_lsn()")
        assert ended is not None and ended[0] is not None
        connection.query("COMMIT")
        high = _key(info, rows[-1]) if len(rows) == limit else None
        return ChunkRows(Chunk(progress.last, high, visibility, lsn_number(ended[0])), info, stamp_ms, rows)

    def _begin(self, connection: PgConnection, unseen: frozenset[int]) -> tuple[Visibility, int]:
        """Begin a transaction. Return what it sees, and its time (ms)."""
        deadline = time.monotonic() + UNSEEN_SECONDS
        while True:
            connection.query("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            state = connection.one("SELECT pg_current_snapshot(), (extract(epoch FROM now()) * 1000)::bigint")
            assert state is not None and state[0] is not None and state[1] is not None
            visibility = Visibility.parse(state[0])
            hidden = [xid for xid in unseen if not visibility.sees(xid)]
            if not hidden:
                return visibility, int(state[1])
            connection.query("ROLLBACK")
            if time.monotonic() > deadline:
                raise ExternalSystemError(
                    f"{self._settings.owner}: transaction {hidden[0]} is in the log, and cannot be seen yet: does the "
                    "server wait for a synchronous standby?"
                )
            time.sleep(0.002)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _key(info: TableInfo, raw: list[bytes | None]) -> Key:
    # No part of a primary key is NULL.
    return tuple(converter(info.types[index])(raw[index] or b"") for index in info.key)


def _literal(value: Any) -> str:
    """A part of a key, as a parameter of a query."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "\\x" + value.hex() if isinstance(value, bytes) else str(value)
