"""How records become the content of a part file: encoded one by one, JSON lines, CSV, Parquet, ORC."""

from __future__ import annotations

import csv
import io
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar, Final

import msgspec

from headwater.common import serialization
from headwater.common.errors import SerializationError, TypeMismatchError, short_repr
from headwater.common.types import Row

__all__ = ["BulkWriter", "BulkWriterFactory", "BulkWriters"]

_BUFFER_ROWS: Final = 50_000


class BulkWriter(ABC):
    """Writes one part file. The file belongs to the sink, which flushes and closes it."""

    @abstractmethod
    def add_batch(self, values: Sequence[Any]) -> None: ...

    def finish(self) -> None:
        """Write what the format needs at its end. Nothing is added afterwards."""


class BulkWriterFactory(serialization.BulkWriterFactory):
    """Makes the writer of one part file. Pickled to the tasks."""

    joins: ClassVar[bool] = False
    """True if files one after the other are a file of the format: then one may go on over several checkpoints."""

    @abstractmethod
    def create(self, file: BinaryIO) -> BulkWriter: ...


class BulkWriters:
    """The formats that `FileSink.for_bulk_format` knows."""

    @staticmethod
    def json_lines() -> BulkWriterFactory:
        """One JSON value per line; a Row with names is an object, one without is an array."""
        return _JsonLines()

    @staticmethod
    def csv(columns: Sequence[str] | None = None, header: bool = True, delimiter: str = ",") -> BulkWriterFactory:
        """CSV from dicts, Rows or tuples. Without `columns` the first record of a file names them, if it has names."""
        return _Csv(None if columns is None else tuple(columns), header, delimiter)

    @staticmethod
    def parquet(schema: Any = None, compression: str = "zstd") -> BulkWriterFactory:
        """Parquet from dicts or named Rows (tuples with a `schema`, a pyarrow.Schema). Without one the first records of
        each file tell the types, so files may differ: give one where readers need it."""
        return ColumnarWriterFactory("Parquet", _arrow_schema("parquet", schema), compression)

    @staticmethod
    def orc(schema: Any = None, compression: str = "zstd") -> BulkWriterFactory:
        """Like `parquet`. ORC has no times of day."""
        return ColumnarWriterFactory("ORC", _arrow_schema("orc", schema), compression)


def _arrow_schema(method: str, schema: Any) -> Any:
    pyarrow = sys.modules.get("pyarrow")  # who has a schema has loaded pyarrow
    if schema is not None and not isinstance(schema, getattr(pyarrow, "Schema", ())):
        raise TypeMismatchError(
            f"BulkWriters.{method}() expects a pyarrow.Schema or nothing, found {short_repr(schema)}; "
            "write it as pyarrow.schema([('name', pyarrow.string()), ('age', pyarrow.int32())])"
        )
    return schema


class EncodedWriter(BulkWriter):
    """Row format: every record by itself."""

    def __init__(self, file: BinaryIO, encoder: serialization.Encoder) -> None:
        self._file = file
        self._encode = encoder.encode

    def add_batch(self, values: Sequence[Any]) -> None:
        self._file.write(b"".join(map(self._encode, values)))


@dataclass(frozen=True)
class _JsonLines(BulkWriterFactory):
    insert_only = True

    joins = True

    def create(self, file: BinaryIO) -> BulkWriter:
        return _JsonLinesWriter(file)


class _JsonLinesWriter(BulkWriter):
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._encoder = msgspec.json.Encoder(enc_hook=row_for_json)

    def add_batch(self, values: Sequence[Any]) -> None:
        try:
            self._file.write(self._encoder.encode_lines(values))
        except (TypeError, ValueError, NotImplementedError) as error:
            for value in values:
                try:
                    self._encoder.encode(value)
                except (TypeError, ValueError, NotImplementedError) as cause:
                    raise SerializationError(f"not a JSON value: {short_repr(value)}: {cause}") from cause
            raise SerializationError(f"records cannot be written as JSON: {error}") from error


def row_for_json(value: Any) -> Any:
    """Return a Row as JSON has it: an object, or an array if it has no names."""
    if isinstance(value, Row):
        return value.as_dict() if value.get_field_names() else list(value)
    raise NotImplementedError(f"objects of type {type(value).__name__} have no JSON form")


@dataclass(frozen=True)
class _Csv(BulkWriterFactory):
    insert_only = True

    columns: tuple[str, ...] | None
    header: bool
    delimiter: str

    def create(self, file: BinaryIO) -> BulkWriter:
        return _CsvWriter(file, self)


class _CsvWriter(BulkWriter):
    def __init__(self, file: BinaryIO, settings: _Csv) -> None:
        self._file = file
        self._columns = settings.columns
        self._header_due = settings.header
        self._delimiter = settings.delimiter

    def add_batch(self, values: Sequence[Any]) -> None:
        text = io.StringIO()
        writer = csv.writer(text, delimiter=self._delimiter, lineterminator="\n")
        if values and self._columns is None:
            self._columns = _names_of(values[0])
        if self._header_due and values:
            self._header_due = False
            if self._columns is not None:
                writer.writerow(self._columns)
        writer.writerows(rows_in_order(values, self._columns))
        self._file.write(text.getvalue().encode())


@dataclass(frozen=True)
class ColumnarWriterFactory(BulkWriterFactory):
    """Parquet or ORC."""

    insert_only = True

    kind: str
    schema: Any
    compression: str

    @property
    def method(self) -> str:
        """Of BulkWriters, for errors about records without a schema."""
        return f"BulkWriters.{self.kind.lower()}"

    def create(self, file: BinaryIO) -> BulkWriter:
        return _ColumnarWriter(file, self)

    def open_writer(self, file: BinaryIO, schema: Any) -> Any:
        if self.kind == "ORC":
            import pyarrow.orc as orc

            return orc.ORCWriter(file, compression=self.compression)
        import pyarrow.parquet as parquet

        return parquet.ParquetWriter(file, schema, compression=self.compression, write_page_checksum=True)


class _ColumnarWriter(BulkWriter):
    def __init__(self, file: BinaryIO, settings: ColumnarWriterFactory) -> None:
        self._file = file
        self._settings = settings
        self._schema = settings.schema
        self._columns: tuple[str, ...] | None = tuple(settings.schema.names) if settings.schema is not None else None
        self._rows: list[Sequence[Any]] = []
        """Of records whose schema is not known yet: the first ones of the file tell it."""
        self._tables: list[Any] = []
        self._writer: Any = None

    def add_batch(self, values: Sequence[Any]) -> None:
        if not values:
            return
        if self._columns is None:
            self._columns = _names_of(values[0])
            if self._columns is None:
                raise SerializationError(
                    f"{self._settings.kind} needs column names, but {short_repr(values[0])} has none; write dicts or "
                    f"named Rows, or give {self._settings.method} a schema"
                )
        rows = rows_in_order(values, self._columns)
        if self._schema is None:
            self._rows += rows
        else:  # at once: whoever wrote the batch learns that it does not fit
            self._tables.append(self._to_table(rows))
        if len(self._rows) + sum(table.num_rows for table in self._tables) >= _BUFFER_ROWS:
            self._write()

    def finish(self) -> None:
        self._write()
        if self._writer is not None:
            self._writer.close()

    def _write(self) -> None:
        import pyarrow

        if self._rows:
            self._tables.append(self._first_table())
            self._schema, self._rows = self._tables[-1].schema, []
        if not self._tables:
            return
        if self._writer is None:
            self._writer = self._settings.open_writer(self._file, self._schema)
        write = self._writer.write if self._settings.kind == "ORC" else self._writer.write_table
        write(pyarrow.concat_tables(self._tables).combine_chunks())
        self._tables = []

    def _to_table(self, rows: Sequence[Sequence[Any]]) -> Any:
        from headwater.datastream.connectors.columnar.arrow_values import to_table

        try:
            return to_table(rows, self._schema, self._settings.kind)
        except SerializationError as error:
            if self._settings.schema is not None:
                raise
            raise self._misfit(rows, error) from error

    def _first_table(self) -> Any:
        import pyarrow

        columns = [list(column) for column in zip(*self._rows, strict=True)]
        try:
            return pyarrow.table(dict(zip(self._columns or (), columns, strict=True)))
        except (pyarrow.ArrowException, TypeError, ValueError) as error:
            raise self._misfit(self._rows, error) from error

    def _misfit(self, rows: Sequence[Sequence[Any]], error: Exception) -> SerializationError:
        return SerializationError(
            f"records do not fit into one {self._settings.kind} file: {error}; give {self._settings.method} a schema "
            f"that fits all of them. The first of them is {short_repr(rows[0])}"
        )


def _names_of(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, Mapping):
        return tuple(value)
    if isinstance(value, Row):
        names = value.get_field_names()
        return tuple(names) if names else None
    return getattr(value, "_fields", None)  # a NamedTuple


def rows_in_order(values: Sequence[Any], columns: tuple[str, ...] | None) -> Sequence[Sequence[Any]]:
    """The values of each record in the order of `columns`. Batches of plain tuples or dicts take a fast way."""
    kinds = set(map(type, values))
    if columns is not None and kinds == {tuple} and set(map(len, values)) == {len(columns)}:
        return values
    if columns is not None and kinds == {dict} and set(map(len, values)) == {len(columns)}:
        try:
            return [[value[column] for column in columns] for value in values]
        except KeyError:
            pass  # `_fields` says which record it is
    return [_fields(value, columns) for value in values]


def _fields(value: Any, columns: tuple[str, ...] | None) -> Sequence[Any]:
    """The values of one record in the order of `columns`."""
    if isinstance(value, Mapping):
        if columns is None or len(value) != len(columns) or any(column not in value for column in columns):
            raise SerializationError(f"record {short_repr(value)} does not have the columns {list(columns or ())}")
        return [value[column] for column in columns]
    if isinstance(value, Row) and columns is not None and value.get_field_names():
        value = _fields(value.as_dict(), columns)
    if isinstance(value, (str, bytes)) or not isinstance(value, (Row, Sequence)):
        value = (value,)
    fields = list(value)
    if columns is not None and len(fields) != len(columns):
        raise SerializationError(f"record {short_repr(value)} does not have the columns {list(columns)}")
    return fields
