"""What the builder collects, and what the server must have before changes can be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from headwater.common.errors import HeadwaterError
from headwater.datastream.connectors.cdc.progress import Key
from headwater.datastream.connectors.cdc.settings import ChangeSettings
from headwater.datastream.connectors.jdbc.mysql import MySql
from headwater.datastream.connectors.mysql_cdc.position import LogPlace

NEEDED: Final = (
    ("log_bin", "ON"),
    ("binlog_format", "ROW"),
    ("binlog_row_image", "FULL"),
    ("binlog_row_metadata", "FULL"),
)
"""Settings of the server: the log must have whole rows, and the names of columns."""
_TEXTS: Final = frozenset(("char", "varchar", "text", "tinytext", "mediumtext", "longtext", "enum"))
_REFUSED: Final = frozenset(("bit", "set", "geometry", "point", "linestring", "polygon"))


@dataclass
class MySqlSettings(ChangeSettings):
    """Settings of a source."""

    source_name = "MySqlSource"

    server_id: int | None = None

    def server(self) -> MySql:
        return MySql(self.options, self.owner)


@dataclass(frozen=True)
class TableInfo:
    """What the snapshot needs to know of a table."""

    name: str
    quoted: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    key: tuple[str, ...]

    def selected(self) -> str:
        """The columns, as the log has them: a FLOAT of SELECT is rounded for people."""
        found = [
            f"CAST({quoted(column)} AS DOUBLE)" if kind == "float" else quoted(column)
            for column, kind in zip(self.columns, self.types, strict=True)
        ]
        return ", ".join(found)

    def order_by(self) -> list[str]:
        """Expressions by which the rows are read: their order must be the one that keys have here."""
        return [f"CAST({quoted(column)} AS BINARY)" if self._is_text(column) else quoted(column) for column in self.key]

    def key_of(self, values: dict[str, Any]) -> Key:
        return tuple(
            value.encode() if isinstance(value := values[column], str) and self._is_text(column) else value
            for column in self.key
        )

    def _is_text(self, column: str) -> bool:
        return self.types[self.columns.index(column)] in _TEXTS


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def check_server(settings: MySqlSettings, server: MySql, connection: Any) -> None:
    """Raise an error that says which setting is missing."""
    cursor = connection.cursor()
    for name, wanted in NEEDED:
        cursor.execute("SHOW GLOBAL VARIABLES LIKE %s", (name,))
        found = cursor.fetchone()
        if found is None or found[1] != wanted:
            cure = "Start it with log_bin" if name == "log_bin" else f"SET GLOBAL {name} = {wanted}"
            raise HeadwaterError(
                f"{settings.owner}: {server.describe()} has {name} = {found and found[1]}, and changes can only be "
                f"read with {wanted}. {cure}"
            )


def table_info(settings: MySqlSettings, server: MySql, connection: Any, name: str) -> TableInfo:
    """Look a table up. Raises an error that says what to do if its changes cannot be read."""
    database, _, table = name.partition(".")
    cursor = connection.cursor()
    cursor.execute(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = %s AND table_name = %s "
        "ORDER BY ordinal_position",
        (database, table),
    )
    columns = [(str(column), str(kind).lower()) for column, kind in cursor.fetchall()]
    if not columns:
        raise HeadwaterError(f"{settings.owner}: {server.describe()} has no table '{name}'")
    refused = [f"{column} ({kind})" for column, kind in columns if kind in _REFUSED]
    if refused:
        raise HeadwaterError(f"{settings.owner}: table '{name}' has columns that cannot be read: {', '.join(refused)}")
    key = server.primary_key(connection, f"{quoted(database)}.{quoted(table)}")
    if not key:
        raise HeadwaterError(
            f"{settings.owner}: table '{name}' has no primary key, by which its rows could be told apart; add one"
        )
    return TableInfo(
        name,
        f"{quoted(database)}.{quoted(table)}",
        tuple(column for column, _ in columns),
        tuple(kind for _, kind in columns),
        tuple(key),
    )


def log_end(connection: Any) -> LogPlace:
    cursor = connection.cursor()
    cursor.execute("SHOW MASTER STATUS")
    file, offset = cursor.fetchone()[:2]
    return LogPlace.of(file, int(offset))


def begin_snapshot(connection: Any) -> LogPlace:
    """Begin a transaction that sees exactly what is in the log before a place, and return the place.

    MariaDB says the place itself. MySQL does not: all writers wait for the few milliseconds of a global read lock.
    """
    cursor = connection.cursor()
    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
    found = {name.lower(): value for name, value in cursor.fetchall()}
    if found.get("binlog_snapshot_file"):
        return LogPlace.of(found["binlog_snapshot_file"], int(found["binlog_snapshot_position"]))
    connection.rollback()
    cursor.execute("FLUSH TABLES WITH READ LOCK")
    try:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        return log_end(connection)
    finally:
        cursor.execute("UNLOCK TABLES")
