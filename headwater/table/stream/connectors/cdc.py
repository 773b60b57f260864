"""The connectors postgres-cdc and mysql-cdc: a table of a database, and all that is done to it from then on."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from headwater.common.connector import Source
from headwater.common.errors import ConfigurationError, SqlError
from headwater.common.types import RowKind, named_row
from headwater.datastream.connectors.cdc.changes import ChangeFormat, Place, RowChanges
from headwater.datastream.connectors.cdc.startup import StartupOptions
from headwater.datastream.connectors.mysql_cdc.source import MySqlSource
from headwater.datastream.connectors.postgres_cdc.source import PostgresIncrementalSource
from headwater.table.stream.connectors.contract import ChangelogMode, Connector, Field, TableContext, TableSource
from headwater.table.stream.connectors.database_values import POSTGRES, expected_table
from headwater.table.stream.connectors.jdbc import DatabaseConverter

STARTS = {
    "initial": StartupOptions.initial(),
    "latest-offset": StartupOptions.latest(),
    "committed-offset": StartupOptions.committed(),
    "snapshot": StartupOptions.snapshot(),
}
OP_TS = "op_ts"
METADATA = ("table_name", "schema_name", "database_name", OP_TS)
_REFUSED = {
    "connect.timeout": "a connection is tried for 10 seconds",
    "connect.max-retries": "the job's restart strategy says how often",
    "connection.pool.size": "a table has one reader",
    "server-time-zone": "times without a zone are TIMESTAMP, and TIMESTAMP columns are read in UTC",
    "scan.incremental.close-idle-reader.enabled": "a table has one reader",
    "scan.snapshot.fetch.size": "it is called 'scan.incremental.snapshot.chunk.size'",
}
"""Options of Flink CDC that are not here, and why."""


_JDBC = "jdbc.properties."
"""Begins options that are properties of the URL."""


class PostgresCdcConnector(Connector):
    """One table, with its primary key and REPLICA IDENTITY FULL."""

    data_options = ("database-name", "schema-name", "table-name")

    def source(self, context: TableContext) -> TableSource:
        options = _options(context)
        database, schema = options.required("database-name"), options.text("schema-name") or "public"
        table = options.required("table-name")
        if (options.text("changelog-mode") or "all") != "all":
            raise context.error(
                "'changelog-mode' is 'all' only: the log must have old rows (ALTER TABLE … REPLICA IDENTITY FULL)"
            )
        plugin = options.text("decoding.plugin.name") or "pgoutput"
        if plugin != "pgoutput":
            raise context.error(f"'decoding.plugin.name' = '{plugin}': there is 'pgoutput', which every server has")
        builder = (
            PostgresIncrementalSource.builder()
            .hostname(options.required("hostname"))
            .port(int(options.number("port", 5432) or 0))
            .database(database)
            .table_list(f"{schema}.{table}")
            .username(options.required("username"))
            .slot_name(options.required("slot.name"))
            .startup_options(_start(context, tuple(STARTS)))
            .deserializer(_form(context))
        )
        if (password := options.text("password")) is not None:
            builder.password(password)
        if (rows := options.number("scan.incremental.snapshot.chunk.size")) is not None:
            builder.split_size(int(rows))
        if (interval := context.duration_ms("heartbeat.interval.ms")) is not None:
            builder.heartbeat_interval(interval)
        if (publication := options.text("debezium.publication.name")) is not None:
            builder.publication_name(publication)
        source = _built(context, builder)
        source.settings.expected = _expected(context, table, POSTGRES)
        return _table_source(context, source, POSTGRES, (table, schema, database))


class MySqlCdcConnector(Connector):
    """One table, with its primary key, of MySQL or MariaDB."""

    data_options = ("database-name", "table-name")

    def source(self, context: TableContext) -> TableSource:
        options = _options(context)
        database, table = options.required("database-name"), options.required("table-name")
        builder = (
            MySqlSource.builder()
            .hostname(options.required("hostname"))
            .port(int(options.number("port", 3306) or 0))
            .table_list(f"{database}.{table}")
            .username(options.required("username"))
            .startup_options(_start(context, ("initial", "latest-offset", "snapshot")))
            .deserializer(_form(context))
        )
        if (password := options.text("password")) is not None:
            builder.password(password)
        if (rows := options.number("scan.incremental.snapshot.chunk.size")) is not None:
            builder.split_size(int(rows))
        if (server := options.text("server-id")) is not None:
            builder.server_id(server)
        given = [key for key in context.table.options if key.startswith(_JDBC)]
        builder.jdbc_properties({key.removeprefix(_JDBC): options.required(key) for key in given})
        source = _built(context, builder)
        source.settings.expected = _expected(context, table, "mysql")
        return _table_source(context, source, "mysql", (table, "", database))


def _options(context: TableContext) -> Any:
    options = context.options
    context.refuse(_REFUSED)
    if not options.flag("scan.incremental.snapshot.enabled", True):
        raise context.error("'scan.incremental.snapshot.enabled' is 'true' only: a snapshot takes no locks")
    for each in context.fields:
        if each.metadata is not None and each.metadata not in METADATA:
            raise context.error(
                f"column '{each.name}': there is no metadata '{each.metadata}'; there is {', '.join(METADATA)}"
            )
    if not context.schema.primary_key:
        raise context.error("it needs the PRIMARY KEY (…) NOT ENFORCED of the table in the database")
    return options


def _start(context: TableContext, modes: tuple[str, ...]) -> StartupOptions:
    mode = context.options.text("scan.startup.mode") or "initial"
    if mode not in modes:
        raise context.error(f"'scan.startup.mode' = '{mode}': there is {', '.join(modes)}")
    return STARTS[mode]


def _built(context: TableContext, builder: Any) -> Any:
    try:
        return builder.build()
    except ConfigurationError as error:
        raise context.error(str(error)) from None


def _form(context: TableContext) -> ChangeFormat:
    return TimedRows() if any(each.metadata == OP_TS for each in context.fields) else RowChanges()


def _expected(context: TableContext, table: str, kind: str) -> Any:
    fields = [each for each in context.fields if each.metadata is None]
    return expected_table(context, table, fields, kind)


def _table_source(context: TableContext, source: Source, kind: str, names: tuple[str, str, str]) -> TableSource:
    # The time of a change is no part of the row that it takes back: that row is found by its key.
    timed = any(each.metadata == OP_TS for each in context.fields)
    converter = ChangesConverter(context.fields, kind, str(context.identifier), names)
    return TableSource(source, converter, ChangelogMode.UPSERT if timed else ChangelogMode.ALL, parallelism=1)


class TimedRows(ChangeFormat):
    """Rows that replace each other by key, with the time of the change behind their columns (ms; 0: the snapshot)."""

    def records(
        self, kind: str, names: list[str], before: list[Any] | None, after: list[Any] | None, place: Place
    ) -> list[Any]:
        stamp = 0 if place.snapshot else place.timestamp_ms
        found = []
        if before is not None:  # an update may be one of the key
            found.append(named_row([*before, stamp], names, RowKind.DELETE))
        if after is not None:
            found.append(named_row([*after, stamp], names, RowKind.INSERT))
        return found


@dataclass(frozen=True)
class ChangesConverter(DatabaseConverter):
    """Rows whose columns may change on the way: they are found by name in each."""

    names: tuple[str, str, str] = ("", "", "")
    """What the metadata `table_name`, `schema_name` and `database_name` are."""

    def columns(self, records: list[Any]) -> list[list[Any]]:
        found: list[list[Any]] = [[] for _ in self.fields]
        known: list[str] | None = None
        places: list[int | None] = []
        for record in records:
            if record._fields is not known:
                known = record._fields or []
                places = [self._place(each, known) for each in self.fields]
            values = record._values
            for column, each, place in zip(found, self.fields, places, strict=True):
                column.append(self._metadata(each, values) if place is None else values[place])
        return found

    def _place(self, field: Field, names: list[str]) -> int | None:
        if field.metadata is not None:
            return None
        if field.name not in names:
            raise SqlError(
                f"table '{self.table}': the table in the database has no column '{field.name}' any more; it has"
                f" {', '.join(names)}"
            )
        return names.index(field.name)

    def _metadata(self, field: Field, values: list[Any]) -> Any:
        if field.metadata == OP_TS:
            return datetime.datetime.fromtimestamp(values[-1] / 1000, datetime.UTC)
        return self.names[METADATA.index(str(field.metadata))]
