"""What the builder collects, and what the database must have before changes can be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.datastream.connectors.cdc.settings import ChangeSettings
from headwater.datastream.connectors.postgres_cdc.connection import PgConnection, SqlState, lsn_number

LEAST_VERSION: Final = 140_000
"""Of the server: pgoutput has messages since 14."""
NATIVE_ORDER: Final = frozenset((16, 17, 20, 21, 23, 26, 700, 701, 1082, 1083, 1114, 1184, 1700, 2950))
"""Types of key columns whose order is the same here as in the database: numbers, times, bytes, booleans, uuid. Texts
are sorted as the database's collation says, which Python does not know."""


@dataclass
class CdcSettings(ChangeSettings):
    """Settings of a source."""

    source_name = "PostgresIncrementalSource"

    database: str = ""
    slot: str = "headwater"
    publication: str | None = None
    heartbeat_ms: int = 30_000

    @property
    def publication_name(self) -> str:
        return self.publication or f"{self.slot}_publication"

    def connect(self, *, replication: bool = False) -> PgConnection:
        return PgConnection(self.options, self.owner, f"headwater cdc {self.slot}", replication=replication)


@dataclass(frozen=True)
class TableInfo:
    """What the snapshot needs to know of a table."""

    name: str
    quoted: str
    columns: tuple[str, ...]
    types: tuple[int, ...]
    key: tuple[int, ...]
    """Which columns are the primary key."""

    def order_by(self) -> list[str]:
        """Expressions by which the rows are read: their order must be the one that keys have here."""
        found = []
        for index in self.key:
            column = quoted(self.columns[index])
            found.append(column if self.types[index] in NATIVE_ORDER else f'{column}::text COLLATE "C"')
        return found


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def prepare(settings: CdcSettings, connection: PgConnection) -> None:
    """Check the server and the tables, and make publication and slot if they are not there. For the driver."""
    try:
        _check_server(settings, connection)
        for name in settings.tables:
            info = table_info(settings, connection, name)
            if settings.expected is not None:
                codes = dict(zip(info.columns, info.types, strict=True))
                settings.expected.check(settings.owner, codes, postgres_types=True)
                settings.expected.check_key(settings.owner, [info.columns[at] for at in info.key])
        _make_publication(settings, connection)
        _make_slot(settings, connection)
    except SqlState as error:
        raise connection.failed("cannot prepare the reading of changes", error) from None


def _check_server(settings: CdcSettings, connection: PgConnection) -> None:
    if connection.raw.server_version < LEAST_VERSION:
        raise HeadwaterError(
            f"{settings.owner}: {connection.server.describe()} is of version "
            f"{connection.raw.server_version // 10_000}; expected {LEAST_VERSION // 10_000} or newer"
        )
    found = connection.one("SHOW wal_level")
    if found != ["logical"]:
        raise HeadwaterError(
            f"{settings.owner}: {connection.server.describe()} has wal_level '{found and found[0]}', and changes can "
            "only be read with 'logical'. Run ALTER SYSTEM SET wal_level = 'logical' and restart the server"
        )


def table_info(settings: CdcSettings, connection: PgConnection, name: str) -> TableInfo:
    """Look a table up. Raises an error that says what to do if its changes cannot be read."""
    schema, _, table = name.partition(".")
    found = connection.one(
        "SELECT c.oid, c.relreplident, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = $1 AND c.relname = $2",
        schema,
        table,
    )
    if found is None:
        raise HeadwaterError(f"{settings.owner}: {connection.server.describe()} has no table '{name}'")
    oid, identity, kind = found
    if kind != "r":
        raise HeadwaterError(f"{settings.owner}: '{name}' is no plain table, and only those can be read")
    rows = connection.query(
        "SELECT a.attname, a.atttypid, array_position(i.indkey::int2[], a.attnum) FROM pg_attribute a "
        "LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY(i.indkey) "
        "WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum",
        oid,
    )
    columns = [(name.decode(), int(kind), at) for name, kind, at in rows if name is not None and kind is not None]
    key = sorted((int(at), index) for index, (_, _, at) in enumerate(columns) if at is not None)
    if not key:
        raise HeadwaterError(
            f"{settings.owner}: table '{name}' has no primary key, by which its rows could be told apart; add one"
        )
    if identity != "f":
        raise HeadwaterError(
            f"{settings.owner}: the log has no old rows of table '{name}'. Run ALTER TABLE "
            f"{quoted(schema)}.{quoted(table)} REPLICA IDENTITY FULL"
        )
    return TableInfo(
        name,
        f"{quoted(schema)}.{quoted(table)}",
        tuple(column for column, _, _ in columns),
        tuple(kind for _, kind, _ in columns),
        tuple(index for _, index in key),
    )


def _make_publication(settings: CdcSettings, connection: PgConnection) -> None:
    name = settings.publication_name
    if connection.one("SELECT 1 FROM pg_publication WHERE pubname = $1", name) is None:
        tables = ", ".join(".".join(map(quoted, table.split(".", 1))) for table in settings.tables)
        connection.query(f"CREATE PUBLICATION {quoted(name)} FOR TABLE {tables}")
        return
    rows = connection.query("SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = $1", name)
    there = {row[0].decode() for row in rows if row[0] is not None}
    missing = [table for table in settings.tables if table not in there]
    if missing:
        names = ", ".join(".".join(map(quoted, table.split(".", 1))) for table in missing)
        raise HeadwaterError(
            f"{settings.owner}: publication '{name}' has no table {', '.join(missing)}; run ALTER PUBLICATION "
            f"{quoted(name)} ADD TABLE {names}"
        )


def _make_slot(settings: CdcSettings, connection: PgConnection) -> None:
    found = connection.one(
        "SELECT slot_type, plugin, database = current_database() FROM pg_replication_slots WHERE slot_name = $1",
        settings.slot,
    )
    if found is None:
        connection.query("SELECT pg_create_logical_replication_slot($1, 'pgoutput')", settings.slot)
    elif found != ["logical", "pgoutput", "t"]:
        raise HeadwaterError(
            f"{settings.owner}: slot '{settings.slot}' exists and is not a logical one of pgoutput in this database "
            f"(found {found[0]}, {found[1]}); choose another slot_name"
        )


def slot_lsn(settings: CdcSettings, connection: PgConnection, wanted: int | None) -> int:
    """Return how far the slot is. Raises if it is gone, or further than `wanted`: then changes are lost."""
    found = connection.one(
        f"SELECT confirmed_flush_lsn, wal_status FROM pg_replication_slots WHERE slot_name = '{settings.slot}'"
    )
    where = f"{settings.owner}: replication slot '{settings.slot}' in {connection.server.describe()}"
    anew = "Nothing was skipped: start the job anew (a new checkpoint directory), with a new snapshot"
    if found is None:
        raise HeadwaterError(f"{where} is gone, and with it the changes since the last checkpoint. {anew}")
    if found[1] == "lost":
        raise HeadwaterError(
            f"{where} is lost: the server has removed log that was not read yet (max_slot_wal_keep_size). {anew}"
        )
    assert found[0] is not None
    lsn = lsn_number(found[0])
    if wanted is not None and lsn > wanted:
        raise HeadwaterError(
            f"{where} is already at {found[0]}, behind the place where the job wants to go on: changes in between are "
            f"gone. Another reader used the slot, or the checkpoint is an old one. {anew}"
        )
    return lsn


def check_names(settings: CdcSettings) -> None:
    """Raise ConfigurationError for names that cannot be."""
    if not settings.slot.replace("_", "a").isalnum() or settings.slot != settings.slot.lower():
        raise ConfigurationError(
            f"slot_name: expected lower-case letters, digits and _, found {settings.slot!r}, as PostgreSQL wants it"
        )
    if "'" in settings.publication_name:
        raise ConfigurationError(f"publication_name: {settings.publication_name!r} has a quote in it")
