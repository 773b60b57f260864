"""The filesystem connector: files of a directory, read once or watched, and written exactly once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import pyarrow as pa

from headwater.common.config.values import read_memory_bytes
from headwater.common.connector import Sink
from headwater.common.serialization import Encoder as FileEncoder
from headwater.common.serialization import SerializationSchema
from headwater.common.types import Row, RowKind
from headwater.datastream.connectors.bucket_assigner import BucketAssigner
from headwater.datastream.connectors.bulk_writers import BulkWriter, ColumnarWriterFactory
from headwater.datastream.connectors.file_compaction import FileCompactor, FileCompactStrategy
from headwater.datastream.connectors.file_formats import BulkFormat, FileFormat, StreamFormat
from headwater.datastream.connectors.file_sink import FileSink
from headwater.datastream.connectors.file_source import FileSource, FileSourceBuilder
from headwater.datastream.connectors.part_files import RollingPolicy
from headwater.table.stream.changes import Changes, schema_of
from headwater.table.stream.connectors.contract import (
    ChangelogMode,
    Connector,
    Field,
    TableContext,
    TableSink,
    TableSource,
)
from headwater.table.stream.connectors.csv_blocks import BlockConverter, csv_blocks
from headwater.table.stream.connectors.field_values import written
from headwater.table.stream.connectors.file_commits import SINK_OPTIONS, SUCCESS, CommittingFileSink, partition_commit
from headwater.table.stream.connectors.file_lookup import FileLookup
from headwater.table.stream.connectors.file_partitions import NO_PARTITIONS, PartitionKeys, partitioned
from headwater.table.stream.connectors.formats import Format, format_of, read_column
from headwater.table.stream.connectors.pushed import Wanted
from headwater.table.stream.connectors.rows import RowsEncoder, changes_of
from headwater.table.stream.operators.to_changes import Converter
from headwater.table.types.arrow import schema_to_arrow
from headwater.table.types.logical import RowField, RowType

COLUMNAR = ("parquet", "orc")
COMPRESSION = "zstd"


class FilesystemConnector(Connector):
    """Formats csv, json, parquet, orc, avro, and the changelogs of debezium-json and its kin."""

    data_options = ("path",)

    def source(self, context: TableContext) -> TableSource:
        context.no_metadata()
        path = context.options.required("path")
        _sink_options(context)
        name = context.options.required("format")
        mode = ChangelogMode.APPEND
        form: FileFormat
        keys = _partition_keys(context)
        directories = [each.name for each in keys.fields]
        if name in COLUMNAR:
            names = [each.name for each in context.fields if each.name not in directories]
            make = BulkFormat.parquet_format if name == "parquet" else BulkFormat.orc_format
            form = make(names or None, batches=True)
            converter: Converter = BatchConverter(context.fields, str(context.identifier))
        else:
            physical = [Field(c.name, c.type) for c in context.schema.columns if c.is_physical()]
            data = [each for each in physical if each.name not in directories]
            every = [*data, *keys.fields]
            found = format_of(context, "format", data, lines=True, columnar=COLUMNAR)
            if found.name == "avro" and directories:
                raise context.error("files of format 'avro' cannot be read from a partitioned table")
            converter = FormatConverter(
                context.fields,
                tuple([each.name for each in every].index(field.name) for field in context.fields),
                context.zone,
                str(context.identifier),
            )
            blocks = None if directories else csv_blocks(found, converter, context.fields)
            if found.name == "raw" or found.name == "avro":
                form = _other(found, context)
            elif blocks is not None:
                form, converter = blocks, BlockConverter(context.fields)
            else:
                form = StreamFormat.schema_lines_format(found.reader())
            mode = found.mode
        interval = context.duration_ms("source.monitor-interval")
        # A folder that is watched is read whole: another query may go on where this one stopped.
        wanted = Wanted.of(context.filters, directories, context.zone) if interval is None else None
        if directories:
            form = partitioned(form, replace(keys, wanted=wanted))
        builder: FileSourceBuilder = (
            FileSource.for_bulk_file_format(form, path)
            if isinstance(form, BulkFormat)
            else FileSource.for_record_stream_format(form, path)  # type: ignore[arg-type]
        )
        if interval is not None:
            builder = builder.monitor_continuously(interval)
        pushed = "" if wanted is None else "partitions"
        return TableSource(builder.build(), converter, mode, pushed=pushed)

    def lookup(self, context: TableContext, keys: Sequence[str]) -> Any:
        places = [context.names.index(key) for key in keys]
        reload_ms = context.duration_ms("lookup.full-cache.periodic-reload.interval")
        return FileLookup(self.source(context), places, reload_ms), None

    def sink(self, context: TableContext) -> TableSink:
        path = context.options.required("path")
        context.options.ignored("source.monitor-interval", "lookup.full-cache.periodic-reload.interval")
        keys, partitions = context.table.partition_keys, _partition_keys(context)
        data = tuple(each for each in context.fields if each.name not in keys)
        name = context.options.required("format")
        mode = ChangelogMode.APPEND
        builder: Any
        if name in COLUMNAR:
            schema = schema_to_arrow(_row_type(data))
            kind = "Parquet" if name == "parquet" else "ORC"
            factory = (ColumnsOf if keys else ColumnarWriterFactory)(kind, schema, COMPRESSION)
            builder = FileSink.for_bulk_format(path, factory)
            encoder = PartitionedRows(context.names, context.types, partitions=partitions)
        else:
            found = format_of(context, "format", data, lines=True, columnar=COLUMNAR)
            if found.name in ("raw", "avro"):
                raise context.error(
                    f"files of format '{found.name}' cannot be written; there is csv, json, parquet, orc"
                )
            mode = found.mode
            builder = FileSink.for_row_format(path, FileEncoder.of_schema(DataOf(found.writer())))
            encoder = PartitionedRows(context.names, context.types, partitions=partitions, text=True, iso=found.iso)
        assigner = BucketAssigner.of(bucket_of) if keys else BucketAssigner.base_path_bucket_assigner()
        builder = _rolling(context, builder.with_bucket_assigner(assigner), name in COLUMNAR)
        sink: Sink = builder.build()
        commit = partition_commit(context, partitions)
        if commit is not None:
            sink = CommittingFileSink(builder.build(), context.options.text(SUCCESS) or "_SUCCESS")
        return TableSink(sink, encoder, mode, context.sink_parallelism(), uses_key=False, partitions=commit)


def _rolling(context: TableContext, builder: Any, columnar: bool) -> Any:
    """Options sink.rolling-policy.*, and of compaction."""
    size = _bytes(context, "sink.rolling-policy.file-size")
    rollover = context.duration_ms("sink.rolling-policy.rollover-interval")
    inactivity = context.duration_ms("sink.rolling-policy.inactivity-interval")
    if context.options.text("sink.rolling-policy.check-interval") is not None:
        raise context.error("'sink.rolling-policy.check-interval' is not there: each checkpoint asks the policy")
    if columnar and (rollover is not None or inactivity is not None):
        raise context.error(
            "files of this format end with each checkpoint: of 'sink.rolling-policy.*' only 'file-size' counts;"
            " 'auto-compaction' makes larger ones"
        )
    given: dict[str, Any] = {"part_size": size, "rollover_interval": rollover, "inactivity_interval": inactivity}
    given = {key: value for key, value in given.items() if value is not None}
    compact, target = context.options.flag("auto-compaction"), _bytes(context, "compaction.file-size")
    if target is not None and not compact:
        raise context.error("'compaction.file-size' needs 'auto-compaction' = 'true'")
    if given:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what does not count was refused
            builder = builder.with_rolling_policy(RollingPolicy.default_rolling_policy(**given))
    if compact:
        strategy = FileCompactStrategy(target or size)
        how = FileCompactor.columnar_file_compactor() if columnar else FileCompactor.concat_file_compactor()
        builder = builder.enable_compact(strategy, how)
    return builder


def _bytes(context: TableContext, key: str) -> int | None:
    value = context.options.text(key)
    try:
        return None if value is None else read_memory_bytes(value)
    except ValueError as error:
        raise context.error(f"'{key}' = '{value}' is not {error}") from None


def _partition_keys(context: TableContext) -> PartitionKeys:
    types = {column.name: column.type for column in context.schema.columns}
    fields = tuple(Field(name, types[name]) for name in context.table.partition_keys)
    return PartitionKeys(fields, str(context.identifier))


def _sink_options(context: TableContext) -> None:
    context.options.ignored("sink.parallelism", "auto-compaction", "compaction.file-size", *SINK_OPTIONS)
    for each in ("file-size", "rollover-interval", "inactivity-interval"):
        context.options.ignored(f"sink.rolling-policy.{each}")


def _other(found: Format, context: TableContext) -> FileFormat:
    if found.name == "raw":
        return StreamFormat.schema_lines_format(found.reader())
    from headwater.datastream.formats.avro import AvroReaders

    return AvroReaders.for_rows()


def _row_type(fields: Sequence[Field]) -> RowType:
    return RowType(fields=tuple(RowField(each.name, each.type) for each in fields), nullable=False)


@dataclass(frozen=True)
class BatchConverter(Converter):
    """Records are batches of Arrow, with columns by name. One that a file lacks is NULL."""

    fields: tuple[Field, ...]
    table: str

    def convert(self, records: list[Any], timestamps: list[int | None] | None, now_ms: int) -> Changes:
        schema = schema_of(self.fields)
        batches = [
            pa.RecordBatch.from_arrays(
                [
                    batch.column(each.name).cast(kind.type)
                    if each.name in batch.schema.names
                    else pa.nulls(batch.num_rows, kind.type)
                    for each, kind in zip(self.fields, schema, strict=True)
                ],
                schema=schema,
            )
            for batch in records
        ]
        found = pa.Table.from_batches(batches, schema).combine_chunks().to_batches()
        return Changes(found[0] if found else pa.RecordBatch.from_pylist([], schema))


@dataclass(frozen=True)
class FormatConverter(Converter):
    """Records are Rows that a format made; times are texts there."""

    fields: tuple[Field, ...]
    places: tuple[int, ...]
    zone: str
    table: str

    def convert(self, records: list[Any], timestamps: list[int | None] | None, now_ms: int) -> Changes:
        arrays = [
            read_column(
                [record[place] for record in records],
                each.type,
                self.zone,
                f"table '{self.table}': column '{each.name}'",
            )
            for each, place in zip(self.fields, self.places, strict=True)
        ]
        return changes_of(records, arrays, self.fields)


@dataclass(frozen=True)
class PartitionedRows(RowsEncoder):
    """Pairs of a partition's directory and the Row of the other columns. `text`: with times as text."""

    partitions: PartitionKeys = NO_PARTITIONS
    text: bool = False
    iso: bool = False

    def encode(self, rows: pa.RecordBatch, kinds: Sequence[RowKind]) -> list[Any]:
        found = super().encode(rows, kinds)
        keys = [each.name for each in self.partitions.fields]
        names = [name for name in self.names if name not in keys]
        types = dict(zip(self.names, self.types, strict=True))
        if not keys and not self.text:
            return found
        made = []
        for row in found:
            values = [written(row[name], types[name], self.iso) if self.text else row[name] for name in names]
            data = Row.of_kind(row.get_row_kind(), *values)
            data.set_field_names(names)
            made.append((self.partitions.directory([row[key] for key in keys]), data) if keys else data)
        return made


def bucket_of(record: Any) -> str:
    return str(record[0])


class DataOf(SerializationSchema):
    """Writes the row, without the directory that it goes to."""

    def __init__(self, inner: SerializationSchema) -> None:
        self._inner = inner

    def serialize(self, value: Any) -> Any:
        return self._inner.serialize(value[1] if isinstance(value, tuple) else value)


class ColumnsOf(ColumnarWriterFactory):
    """As `DataOf`, for columns."""

    def create(self, file: BinaryIO) -> BulkWriter:
        return _ColumnsWriter(super().create(file))


class _ColumnsWriter(BulkWriter):
    def __init__(self, inner: BulkWriter) -> None:
        self._inner = inner

    def add_batch(self, values: Sequence[Any]) -> None:
        self._inner.add_batch([row for _, row in values])

    def finish(self) -> None:
        self._inner.finish()
