"""What `'connector' = …` means in batch mode: where rows come from and where they go, as values for the runtime."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headwater.common.errors import SqlError
from headwater.table.batch.datagen import datagen_query
from headwater.table.batch.options import TableOptions, nearest
from headwater.table.catalog.objects import CatalogTable, Identifier
from headwater.table.types.logical import LogicalType, RowType, TypeRoot

SOURCES = ("datagen", "filesystem")
SINKS = ("blackhole", "filesystem", "print")
FORMATS = ("csv", "json", "orc", "parquet")


@dataclass(frozen=True)
class MemorySource:
    """Values of the program: an Arrow table, or a DataFrame of Spark."""

    rows: Any


@dataclass(frozen=True)
class QuerySource:
    """Rows that a Spark query makes by itself."""

    sql: str


@dataclass(frozen=True)
class Files:
    """Files in a folder, as Spark's own format of that name reads and writes them."""

    format: str
    path: str
    row_type: RowType
    options: dict[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    empty_texts: tuple[str, ...] = ()
    """Columns where nothing in the file is an empty text, not NULL."""


@dataclass(frozen=True)
class Print:
    """Rows on standard output, as Flink's print connector writes them."""

    prefix: str = ""
    standard_error: bool = False


@dataclass(frozen=True)
class Blackhole:
    """Rows that are computed and forgotten."""


Source = MemorySource | QuerySource | Files
Sink = Files | Print | Blackhole


def source_of(identifier: Identifier, table: CatalogTable) -> Source:
    """Where a table's rows come from. SqlError for a connector or an option that is unknown."""
    if table.rows is not None:
        return MemorySource(table.rows)
    metadata = [column.name for column in table.schema.columns if column.metadata_key is not None]
    if metadata:
        raise SqlError(f"table '{identifier}': metadata column '{metadata[0]}' is not there in batch mode")
    options = _options(identifier, table)
    connector = _connector(options, SOURCES, "read")
    if connector == "datagen":
        sql = datagen_query(table.schema.physical_row(), options)
        options.check()
        return QuerySource(sql)
    return _files(table, options)


def sink_of(identifier: Identifier, table: CatalogTable) -> Sink:
    """Where rows for a table go."""
    if table.rows is not None:
        raise SqlError(f"table '{identifier}' is made of values of the program: nothing can be inserted")
    options = _options(identifier, table)
    connector = _connector(options, SINKS, "write")
    if connector == "filesystem":
        return _files(table, options)
    options.ignored("sink.parallelism")
    if connector == "print":
        found: Sink = Print(options.text("print-identifier") or "", options.flag("standard-error"))
    else:
        found = Blackhole()
    options.check()
    return found


def _options(identifier: Identifier, table: CatalogTable) -> TableOptions:
    options = TableOptions(f"table '{identifier}' ({table.options.get('connector', 'no connector')})", table.options)
    options.ignored("scan.watermark.idle-timeout")  # a batch has no watermarks
    return options


def _connector(options: TableOptions, known: tuple[str, ...], verb: str) -> str:
    connector = options.text("connector")
    if connector is None:
        raise SqlError(f"{options.owner} needs the option 'connector'; there is {', '.join(known)} to {verb}")
    if connector not in known:
        cure = nearest(connector, known)
        raise SqlError(
            f"there is no connector '{connector}' to {verb} in batch mode{cure} (there is {', '.join(known)})"
        )
    return connector


def _files(table: CatalogTable, options: TableOptions) -> Files:
    path = options.required("path")
    format_ = options.required("format")
    if format_ not in FORMATS:
        cure = nearest(format_, FORMATS)
        raise SqlError(f"{options.owner}: there is no format '{format_}'{cure} (there is {', '.join(FORMATS)})")
    options.ignored("sink.parallelism", "auto-compaction", "sink.rolling-policy.file-size")
    row_type = table.schema.physical_row()
    for each in row_type.fields:
        _check_type(each.type, each.name, format_, options)
    spark = _csv(options) if format_ == "csv" else _json(options) if format_ == "json" else {}
    options.check()
    texts: tuple[str, ...] = ()
    if format_ == "csv" and options.text("csv.null-literal") is None:
        kinds = (TypeRoot.CHAR, TypeRoot.VARCHAR)
        texts = tuple(
            each.name for each in row_type.fields if each.type.root in kinds and each.name not in table.partition_keys
        )
    return Files(format_, path, row_type, spark, table.partition_keys, texts)


def _check_type(type_: LogicalType, name: str, format_: str, options: TableOptions) -> None:
    if type_.root in (TypeRoot.TIME, TypeRoot.INTERVAL_DAY_TIME, TypeRoot.INTERVAL_YEAR_MONTH, TypeRoot.RAW):
        raise SqlError(f"{options.owner}: column '{name}' is {type_.sql()}, which {format_} files do not hold here")


_TIME_FORMAT = "yyyy-MM-dd HH:mm:ss[.SSSSSSSSS][.SSSSSS][.SSS]"


def _csv(options: TableOptions) -> dict[str, str]:
    found = {"header": "false", "timestampNTZFormat": _TIME_FORMAT, "timestampFormat": _TIME_FORMAT}
    found["mode"] = "PERMISSIVE" if options.flag("csv.ignore-parse-errors") else "FAILFAST"
    found["sep"] = options.text("csv.field-delimiter") or ","
    found["quote"] = "" if options.flag("csv.disable-quote-character") else options.text("csv.quote-character") or '"'
    found["escape"] = options.text("csv.escape-character") or '"'
    found["nullValue"] = options.text("csv.null-literal") or ""
    if options.flag("csv.allow-comments"):
        found["comment"] = "#"
    return found


def _json(options: TableOptions) -> dict[str, str]:
    standard = options.text("json.timestamp-format.standard") or "SQL"
    if standard not in ("SQL", "ISO-8601"):
        raise SqlError(f"{options.owner}: 'json.timestamp-format.standard' is SQL or ISO-8601, found '{standard}'")
    shape = _TIME_FORMAT if standard == "SQL" else _TIME_FORMAT.replace(" ", "'T'")
    mode = "PERMISSIVE" if options.flag("json.ignore-parse-errors") else "FAILFAST"
    return {"timestampNTZFormat": shape, "timestampFormat": shape, "mode": mode, "ignoreNullFields": "false"}
