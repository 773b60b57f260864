"""Reads the data files of a table: as rows of the table's schema, whatever version of it a file has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import ConfigurationError
from headwater.datastream.connectors.columnar.parquet import KIND, ParquetFile
from headwater.datastream.connectors.columnar.reader import ColumnarReader, RecordForm
from headwater.datastream.connectors.file_access import FileSplit

_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class DataFile:
    """The payload of a split: one file, and the values of columns that are not in it."""

    file: FileSplit
    partition: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True)
class LakeForm(RecordForm):
    """Rows of `schema`. Columns that a file lacks are null, or the same for all of its rows."""

    constants: Mapping[str, str | None] | None = None

    def bind(self, found: Any) -> tuple[list[str] | None, Callable[[Any], Any]]:
        import pyarrow

        constants = self.constants or {}
        by_id = {field.metadata[_FIELD_ID]: field.name for field in found if _FIELD_ID in (field.metadata or {})}
        names: list[str | None] = []
        for field in self.schema:
            field_id = (field.metadata or {}).get(_FIELD_ID)
            name = by_id.get(field_id) if field_id is not None and by_id else field.name
            names.append(name if name in found.names and field.name not in constants else None)
        plain = pyarrow.schema([pyarrow.field(field.name, field.type) for field in self.schema])

        def adapt(batch: Any) -> Any:
            columns = []
            for field, name in zip(plain, names, strict=True):
                if name is not None:
                    column = batch.column(name)
                    columns.append(column if column.type == field.type else column.cast(field.type))
                elif constants.get(field.name) is not None:
                    value = pyarrow.scalar(constants[field.name]).cast(field.type)
                    columns.append(pyarrow.repeat(value, batch.num_rows))
                else:
                    columns.append(pyarrow.nulls(batch.num_rows, field.type))
            return pyarrow.RecordBatch.from_arrays(columns, schema=plain)

        return [name for name in names if name is not None], adapt


@dataclass(frozen=True)
class LakeReading:
    """How a source reads a table."""

    interval_ms: int | None = None
    """How often it looks for files that were added; None: it ends with those that are there."""
    rows: bool = False
    batches: bool = False
    skips_changes: bool = False


class LakeSource(Source):
    """Base of sources that read a table, one split per data file. `schema` says which columns."""

    def __init__(self, schema: Any, reading: LakeReading, files: Mapping[str, Any]) -> None:
        self._schema = schema
        self._reading = reading
        self._files = files
        """Options of the file system that data files are read through."""
        self.bounded = reading.interval_ms is None
        self.discovery_interval_ms = reading.interval_ms

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        payload: DataFile | None = split.payload
        if payload is None:
            return _NoRecords()
        form = LakeForm(
            schema=self._schema,
            rows=self._reading.rows,
            batches=self._reading.batches,
            constants=dict(payload.partition),
        )
        return ColumnarReader(payload.file, position, ParquetFile, KIND, form)


def selected(schema: Any, columns: tuple[str, ...] | None, where: str) -> Any:
    """The fields of `schema` to read."""
    import pyarrow

    if columns is None:
        return schema
    missing = [name for name in columns if name not in schema.names]
    if missing:
        raise ConfigurationError(f"{where} has no column {missing[0]!r}; it has {schema.names}")
    return pyarrow.schema([schema.field(name) for name in columns])


def split_id(version: int, path: str) -> str:
    """Of a file that a version of the table added. `last_version` reads it."""
    return f"v{version:020d} {path}"


def beginning(version: int) -> Split:
    """A split without records, which says where a source began: the table may be empty then."""
    return Split(split_id(version, ""), None)


class _NoRecords(SplitReader):
    def read_batch(self, max_records: int) -> list[Any] | None:
        return None

    def position(self) -> int:
        return 0


def last_version(known: frozenset[str]) -> int:
    """The last version of which files are known."""
    return max(int(each[1:21]) for each in known)
