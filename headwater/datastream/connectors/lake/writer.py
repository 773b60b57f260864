"""Writes the Parquet files of a table. They are part of it only when a commit says so.

Writers work side by side, each on its own files; only the names of the files, with sizes and statistics, go to the
driver. Files of attempts that failed are deleted where that is possible; others stay, as no part of the table, until
the table is vacuumed.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from headwater.checkpoint.paths import validate_name
from headwater.common.connector import ReusableSinkWriter, WriterContext
from headwater.common.errors import HeadwaterError, SerializationError
from headwater.common.machine.local_disk import room_for
from headwater.datastream.connectors.bulk_writers import rows_in_order
from headwater.datastream.connectors.columnar.arrow_values import to_table
from headwater.datastream.connectors.file_store import MAKE_ROOM, FileStore

TARGET_FILE_BYTES: Final = 128 << 20
_BUFFER_ROWS: Final = 50_000
_LONG_TEXT: Final = 64
"""Of longer texts there are no statistics: a table format would have them cut."""


@dataclass(frozen=True)
class PartitionField:
    """One field that files are partitioned by."""

    column: str
    transform: Any = None
    """A function of a pyarrow column; None: the value itself."""


@dataclass(frozen=True)
class TableLayout:
    """How the files of a table look. Pickled to the tasks."""

    kind: str
    """"Delta" or "Iceberg", for errors."""
    store: FileStore
    schema: Any
    """pyarrow.Schema of the records."""
    partition_by: tuple[PartitionField, ...] = ()
    stores_partitions: bool = True
    """False if columns that files are partitioned by are not in the files."""
    target_file_bytes: int = TARGET_FILE_BYTES
    compression: str = "zstd"

    @property
    def file_schema(self) -> Any:
        if self.stores_partitions:
            return self.schema
        import pyarrow

        apart = {each.column for each in self.partition_by}
        return pyarrow.schema([field for field in self.schema if field.name not in apart])

    def open_writer(self, file: Any, schema: Any, metadata: list[Any]) -> Any:
        import pyarrow.parquet as parquet

        return parquet.ParquetWriter(
            file, schema, compression=self.compression, write_page_checksum=True, metadata_collector=metadata
        )


@dataclass(frozen=True)
class LakeFile:
    """A complete data file that a commit adds to the table."""

    path: str
    """Relative to the table's place."""
    size: int
    rows: int
    partition: tuple[tuple[str, str | None], ...] = ()
    """(column, value as text) of what all its rows have in common."""
    stats: str = ""
    epoch: int = 0
    written_ms: int = 0
    job_id: str = ""


@dataclass
class _OpenFile:
    path: str
    partition: tuple[tuple[str, str | None], ...]
    draft: Any
    metadata: list[Any] = field(default_factory=list)
    writer: Any = None
    tables: list[Any] = field(default_factory=list)
    waiting: int = 0
    rows: int = 0


class LakeWriter(ReusableSinkWriter):
    """Writes one partition's records, in one file per value of the table's partition fields, or several large ones."""

    def __init__(self, layout: TableLayout, context: WriterContext) -> None:
        self._layout = layout
        self._names = tuple(layout.schema.names)
        self._file_schema = layout.file_schema
        self._open: dict[tuple[str | None, ...], _OpenFile] = {}
        self._complete: list[LakeFile] = []
        self.begin_epoch(context)

    def begin_epoch(self, context: WriterContext) -> None:
        self._context = context
        validate_name(context.job_id, "job id")
        self._stem = f"part-{context.partition}-{context.epoch}-{uuid.uuid4().hex}"
        self._number = 0

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        with room_for(f"output of {self._layout.kind}", self._layout.store.base_path, MAKE_ROOM):
            for table in self._tables(values):
                for key, rows in self._by_partition(table):
                    self._add(key, rows)

    def prepare_commit(self) -> list[Any]:
        with room_for(f"output of {self._layout.kind}", self._layout.store.base_path, MAKE_ROOM):
            for key in list(self._open):
                self._finish(key)
            store = self._layout.store
            store.sync({f"{store.base_path}/{file.path}".rpartition("/")[0] for file in self._complete})
        complete, self._complete = self._complete, []
        return list(complete)

    def abort(self) -> None:
        for each in self._open.values():
            each.draft.discard()
        for file in self._complete:
            with contextlib.suppress(OSError, HeadwaterError):
                self._layout.store.delete(f"{self._layout.store.base_path}/{file.path}")
        self._open, self._complete = {}, []

    def close(self) -> None:
        self.abort()

    # --- rows to tables

    def _tables(self, values: Sequence[Any]) -> list[Any]:
        """Records as tables of the schema: rows (dicts, Rows, tuples), or whole record batches."""
        import pyarrow

        kinds = {isinstance(value, pyarrow.RecordBatch | pyarrow.Table) for value in values}
        if kinds == {True}:
            return [self._cast(value) for value in values]
        if True in kinds:
            raise SerializationError(f"{self._layout.kind}: found record batches and other records in one stream")
        return [to_table(rows_in_order(values, self._names), self._layout.schema, self._layout.kind)]

    def _cast(self, batch: Any) -> Any:
        import pyarrow

        table = pyarrow.Table.from_batches([batch]) if isinstance(batch, pyarrow.RecordBatch) else batch
        try:
            return table.select(self._names).cast(self._layout.schema)
        except (pyarrow.ArrowException, KeyError, ValueError) as error:
            raise SerializationError(
                f"{self._layout.kind}: a record batch with the columns {table.schema.names} does not fit the table's "
                f"{list(self._names)}: {error}"
            ) from error

    def _by_partition(self, table: Any) -> list[tuple[tuple[str | None, ...], Any]]:
        fields = self._layout.partition_by
        if not fields:
            return [((), table)]
        columns = []
        for each in fields:
            column = table.column(each.column)
            columns.append((column if each.transform is None else each.transform(column)).to_pylist())
        rows_of: dict[tuple[str | None, ...], list[int]] = {}
        for row, values in enumerate(zip(*columns, strict=True)):
            rows_of.setdefault(tuple(map(partition_text, values)), []).append(row)
        if len(rows_of) == 1:
            return [(next(iter(rows_of)), table)]
        return [(key, table.take(rows)) for key, rows in rows_of.items()]

    # --- tables to files

    def _add(self, key: tuple[str | None, ...], table: Any) -> None:
        found = self._open.get(key)
        if found is None:
            found = self._open[key] = self._begin(key)
        found.tables.append(table.select(self._file_schema.names))
        found.waiting += table.num_rows
        found.rows += table.num_rows
        if found.waiting >= _BUFFER_ROWS:
            self._flush(found)
            if found.draft.file.tell() >= self._layout.target_file_bytes:
                self._finish(key)

    def _begin(self, key: tuple[str | None, ...]) -> _OpenFile:
        partition = tuple(zip((each.column for each in self._layout.partition_by), key, strict=True))
        folders = [f"{name}={_in_path(value)}" for name, value in partition]
        path = "/".join([*folders, f"{self._stem}-{self._number}.parquet"])
        self._number += 1
        return _OpenFile(path, partition, self._layout.store.create(f"{self._layout.store.base_path}/{path}"))

    def _flush(self, file: _OpenFile) -> None:
        import pyarrow

        if file.writer is None:
            file.writer = self._layout.open_writer(file.draft.file, self._file_schema, file.metadata)
        file.writer.write_table(pyarrow.concat_tables(file.tables).combine_chunks())
        file.tables, file.waiting = [], 0

    def _finish(self, key: tuple[str | None, ...]) -> None:
        file = self._open[key]
        if file.tables or file.writer is None:
            self._flush(file)
        file.writer.close()
        made = LakeFile(
            file.path,
            file.draft.complete(),
            file.rows,
            file.partition,
            statistics(file.metadata[0]),
            self._context.epoch,
            self._context.now_ms,
            self._context.job_id,
        )
        self._complete.append(made)
        del self._open[key]


def partition_text(value: Any) -> str | None:
    """A value of a partition field, as Delta writes it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _in_path(value: str | None) -> str:
    return "__HIVE_DEFAULT_PARTITION__" if value is None else quote(value, safe=" !$&'()+,;@_-.~")


def statistics(metadata: Any) -> str:
    """What Delta keeps of a file, from its Parquet footer: rows, nulls, and the least and greatest of simple values."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    unknown: set[str] = set()
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            column = metadata.row_group(group).column(index)
            name, found = column.path_in_schema, column.statistics
            if "." in name:
                continue
            if found is None or not found.has_null_count:
                unknown.add(name)
                continue
            nulls[name] = nulls.get(name, 0) + found.null_count
            if found.null_count == column.num_values + found.null_count and not found.has_min_max:
                continue
            if not found.has_min_max or not (_is_simple(found.min) and _is_simple(found.max)):
                unknown.add(name)
                continue
            least[name] = min(least.get(name, found.min), found.min)
            greatest[name] = max(greatest.get(name, found.max), found.max)
    known = {name for name in least if name not in unknown}
    return json.dumps(
        {
            "numRecords": metadata.num_rows,
            "minValues": {name: least[name] for name in known},
            "maxValues": {name: greatest[name] for name in known},
            "nullCount": {name: count for name, count in nulls.items() if name not in unknown},
        }
    )


def _is_simple(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, float):
        return value == value and abs(value) != float("inf")
    return isinstance(value, int) or (isinstance(value, str) and len(value) <= _LONG_TEXT)
