"""The connector jdbc: a table of PostgreSQL, MySQL, MariaDB or SQLite, read once, looked up, or written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.common.errors import ExternalSystemError
from headwater.common.types import RowKind
from headwater.datastream.connectors.base import DeliveryGuarantee
from headwater.datastream.connectors.jdbc.database import open_database
from headwater.datastream.connectors.jdbc.lookup import JdbcLookup
from headwater.datastream.connectors.jdbc.options import (
    DEFAULT_BATCH_SIZE,
    DEFAULT_MAX_RETRIES,
    JdbcConnectionOptions,
    JdbcExecutionOptions,
)
from headwater.datastream.connectors.jdbc.source import DEFAULT_FETCH_SIZE, JdbcSource
from headwater.datastream.connectors.jdbc.table_sink import JdbcTableSink
from headwater.datastream.connectors.jdbc.url import parse_url
from headwater.datastream.no_effect import warn_no_effect
from headwater.table.stream.changes import Changes
from headwater.table.stream.connectors.contract import (
    ChangelogMode,
    Connector,
    Field,
    TableContext,
    TableSink,
    TableSource,
)
from headwater.table.stream.connectors.database_values import (
    POSTGRES,
    column_from,
    expected_table,
    stored,
    stored_as_text,
    stored_type,
)
from headwater.table.stream.connectors.file_lookup import FileLookup
from headwater.table.stream.connectors.lookup_options import CACHE_OPTIONS, lookup_cache
from headwater.table.stream.connectors.pushed import sql_condition
from headwater.table.stream.connectors.rows import RowsEncoder, changes_of
from headwater.table.stream.operators.to_changes import Converter
from headwater.table.types import logical as t

RETRY_SECONDS = 0.2
_PARTITION = ("column", "num", "lower-bound", "upper-bound")
_SINK = ("buffer-flush.max-rows", "buffer-flush.interval", "max-retries", "parallelism", "delivery-guarantee")
_LOOKUP = (
    *CACHE_OPTIONS,
    "lookup.max-retries",
    "lookup.full-cache.reload-strategy",
    "lookup.full-cache.periodic-reload.interval",
)
REFUSED = {
    "connection.max-retry-timeout": "a connection is tried for 10 seconds; 'lookup.max-retries' and"
    " 'sink.max-retries' say how often",
    "lookup.cache.max-rows": "it is called 'lookup.partial-cache.max-rows'",
    "lookup.cache.ttl": "it is called 'lookup.partial-cache.expire-after-write'",
    "lookup.cache.caching-missing-key": "it is called 'lookup.partial-cache.cache-missing-key'",
}
"""Flink's options that are not here, and why."""


class JdbcConnector(Connector):
    data_options = ("table-name",)

    def source(self, context: TableContext) -> TableSource:
        context.no_metadata()
        address, kind, table = _table(context)
        context.options.ignored(*(f"sink.{each}" for each in _SINK), *_LOOKUP)
        if context.options.flag("scan.auto-commit"):
            raise context.error("'scan.auto-commit' is 'false' only: rows come as they are read, in one transaction")
        fetch = _count(context, "scan.fetch-size", 0) or DEFAULT_FETCH_SIZE
        database = open_database(address, f"table '{context.identifier}'")
        expected = expected_table(context, table, context.fields, kind, arrays=True)
        quoted = database.quoted_table(table)
        conditions = [sql_condition(each, database) for each in context.filters if kind == POSTGRES]
        pushed = " AND ".join(each for each in conditions if each is not None)
        query = f"SELECT * FROM {quoted}" + (f" WHERE {pushed}" if pushed else "")
        source = JdbcSource(address, query, quoted, _partition(context), fetch, expected)
        converter = DatabaseConverter(context.fields, kind, str(context.identifier))
        return TableSource(source, converter, pushed=pushed)

    def lookup(self, context: TableContext, keys: Sequence[str]) -> Any:
        options = context.options
        cache = lookup_cache(context, "FULL")
        source = self.source(context)
        retries = _count(context, "lookup.max-retries", 3)
        if (options.text("lookup.cache") or "").upper() == "FULL":
            if (options.text("lookup.full-cache.reload-strategy") or "PERIODIC").upper() != "PERIODIC":
                raise context.error("'lookup.full-cache.reload-strategy' is 'PERIODIC' only")
            interval = context.duration_ms("lookup.full-cache.periodic-reload.interval")
            return FileLookup(source, [context.names.index(key) for key in keys], interval), None
        address, kind, table = _table(context)
        by_name = {each.name: each for each in context.fields}
        wanted = tuple(by_name[key] for key in keys)
        for each in wanted:
            if stored_as_text(each.type, kind):
                raise context.error(
                    f"column '{each.name}': SQLite has no {each.type.sql()}, so it cannot be looked up by it; set"
                    " 'lookup.cache' = 'FULL'"
                )
        found = TableLookup(address, table, wanted, kind, source, retries)
        return found, cache

    def sink(self, context: TableContext) -> TableSink:
        context.no_metadata()
        address, kind, table = _table(context)
        options = context.options
        options.ignored(*(f"scan.partition.{each}" for each in _PARTITION), "scan.fetch-size", "scan.auto-commit")
        options.ignored(*_LOOKUP)
        guarantee = context.sink_guarantee()
        interval = context.duration_ms("sink.buffer-flush.interval", 0)
        if interval and guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            raise context.error(
                "'sink.buffer-flush.interval' is for 'sink.delivery-guarantee' = 'at-least-once': exactly once, rows"
                " are written when their checkpoint is durable"
            )
        size = _count(context, "sink.buffer-flush.max-rows", DEFAULT_BATCH_SIZE)
        retries = _count(context, "sink.max-retries", DEFAULT_MAX_RETRIES)
        execution = JdbcExecutionOptions(interval or 0, max(size, 1), retries)
        expected = expected_table(context, table, context.fields, kind, arrays=True, write=True)
        types = [stored_type(each.type, kind) for each in context.fields]
        sink = JdbcTableSink(expected, types, address, execution, guarantee)
        encoder = StoredRows(context.names, context.types, kind=kind)
        mode = ChangelogMode.UPSERT if expected.key else ChangelogMode.APPEND
        return TableSink(sink, encoder, mode, context.sink_parallelism())


def _table(context: TableContext) -> tuple[JdbcConnectionOptions, str, str]:
    """Where the database is, of which kind, and the table's name there."""
    options = context.options
    context.refuse(REFUSED)
    if options.text("driver") is not None:
        warn_no_effect("'driver' of a jdbc table", "the URL says which database it is, and no Java driver is needed")
    url = options.required("url")
    address = JdbcConnectionOptions(url, options.text("username"), options.text("password"))
    return address, parse_url(url).kind, options.required("table-name")


def _count(context: TableContext, key: str, default: int) -> int:
    """An option that is a whole number, not negative."""
    value = context.options.number(key, default)
    if not isinstance(value, int) or value < 0:
        raise context.error(f"'{key}' = '{value}' is no whole number of at least 0")
    return value


def _partition(context: TableContext) -> tuple[str, int, int, int] | None:
    given = {each: context.options.text(f"scan.partition.{each}") for each in _PARTITION}
    missing = [f"'scan.partition.{each}'" for each, value in given.items() if value is None]
    if len(missing) == len(_PARTITION):
        return None
    if missing:
        raise context.error(f"the options 'scan.partition.*' go together; {', '.join(missing)} is missing")
    number, lower, upper = (context.options.number(f"scan.partition.{each}") for each in _PARTITION[1:])
    if not all(isinstance(each, int) for each in (number, lower, upper)):
        raise context.error("'scan.partition.num', 'lower-bound' and 'upper-bound' are whole numbers")
    if int(number or 0) < 1 or int(lower or 0) > int(upper or 0):
        raise context.error("'scan.partition.num' is at least 1, and 'lower-bound' at most 'upper-bound'")
    return str(given["column"]), int(lower or 0), int(upper or 0), int(number or 1)


@dataclass(frozen=True)
class DatabaseConverter(Converter):
    """Records are Rows that have the table's columns, among others, by name."""

    fields: tuple[Field, ...]
    kind: str
    table: str

    def convert(self, records: list[Any], timestamps: list[int | None] | None, now_ms: int) -> Changes:
        arrays = [
            column_from(values, each.type, self.kind, f"table '{self.table}': column '{each.name}'")
            for each, values in zip(self.fields, self.columns(records), strict=True)
        ]
        return changes_of(records, arrays, self.fields)

    def columns(self, records: list[Any]) -> list[list[Any]]:
        names = records[0].get_field_names() if records else []
        places = [names.index(each.name) for each in self.fields]
        return [[record[place] for record in records] for place in places]


@dataclass(frozen=True)
class StoredRows(RowsEncoder):
    """Rows with the values that the driver takes."""

    kind: str = ""

    def encode(self, rows: pa.RecordBatch, kinds: Sequence[RowKind]) -> list[Any]:
        found = super().encode(rows, kinds)
        texts = [(at, type_) for at, type_ in enumerate(self.types) if stored_as_text(type_, self.kind)]
        for row in found if texts else ():
            for at, type_ in texts:
                row[at] = stored(row[at], type_, self.kind)
        return found


class TableLookup:
    """Rows of a table by some columns, asked for in batches."""

    def __init__(
        self,
        address: JdbcConnectionOptions,
        table: str,
        keys: tuple[Field, ...],
        kind: str,
        source: TableSource,
        retries: int,
    ) -> None:
        assert isinstance(source.converter, DatabaseConverter)
        self._keys = keys
        self._fields = source.converter.fields
        self._kind = kind
        self._table = source.converter.table
        self._source = source.source
        self._retries = retries
        quoted = open_database(address, f"table '{self._table}'").quoted_table(table)
        names = [each.name for each in self._fields]
        texts = [each.name for each in self._fields if t.is_string(each.type)]
        self._lookup = JdbcLookup(address, quoted, [each.name for each in keys], names, texts=texts)

    def open(self) -> None:
        """Look whether the table is there, and what it has: the error comes before the first row does."""
        self._source.discover_splits(1, frozenset())

    def lookup(self, keys: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
        single = len(self._keys) == 1
        left = self._retries
        while True:
            try:
                found = self._lookup.lookup([key[0] if single else key for key in keys])
                break
            except ExternalSystemError:
                if left == 0:
                    raise
                left -= 1
                time.sleep(RETRY_SECONDS)
        keyed = [(((key,) if single else key), row) for key, rows in found.items() for row in rows]
        if not keyed:
            return {}
        names = columns_of([key for key, _ in keyed], self._keys, self._kind, self._table)
        values = columns_of([row for _, row in keyed], self._fields, self._kind, self._table)
        made: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        for key, row in zip(zip(*names, strict=True), zip(*values, strict=True), strict=True):
            made.setdefault(key, []).append(row)
        return made

    def close(self) -> None:
        self._lookup.close()


def columns_of(rows: Sequence[Any], fields: Sequence[Field], kind: str, table: str) -> list[list[Any]]:
    """The columns of some rows, as values of SQL."""
    return [
        column_from([row[at] for row in rows], each.type, kind, f"table '{table}': column '{each.name}'").to_pylist()
        for at, each in enumerate(fields)
    ]
