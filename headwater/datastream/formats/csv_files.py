"""CSV files with a schema: Rows read by a FileSource, Rows written by a FileSink."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from headwater.common.connector import SplitReader
from headwater.common.errors import ConfigurationError, SerializationError
from headwater.datastream.connectors.bulk_writers import BulkWriter, BulkWriterFactory
from headwater.datastream.connectors.csv_reader import CsvReader
from headwater.datastream.connectors.file_access import FileSplit
from headwater.datastream.connectors.file_formats import StreamFormat
from headwater.datastream.connectors.record_readers import BadRecordPolicy
from headwater.datastream.formats.csv_rows import FieldsFromRow, RowFromFields
from headwater.datastream.formats.csv_schema import CsvSchema

__all__ = ["CsvBulkWriters", "CsvReaderFormat"]


@dataclass(frozen=True)
class CsvReaderFormat(StreamFormat):
    """Each CSV record is a Row with the names and types of the schema's columns. Made by `for_schema`."""

    schema: CsvSchema

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        return CsvReaderFormat(_checked(schema))

    def open(self, split: FileSplit, position: Any | None, policy: BadRecordPolicy) -> SplitReader:
        return _RowReader(self.schema, split, position, policy)


class CsvBulkWriters:
    """CSV files for `FileSink.for_bulk_format`."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """Of Rows, dicts and tuples that have the schema's columns. Fields are quoted only where they must be."""
        return _RowWriterFactory(_checked(schema))


def _checked(schema: CsvSchema) -> CsvSchema:
    if not isinstance(schema, CsvSchema):
        raise ConfigurationError(f"CSV: the schema is {schema!r}; expected one made by CsvSchema.builder()")
    return schema


class _RowReader(CsvReader):
    def __init__(self, schema: CsvSchema, split: FileSplit, position: Any | None, policy: BadRecordPolicy) -> None:
        self._to_row = RowFromFields(schema.columns, schema.dialect)
        super().__init__(
            split,
            position,
            policy,
            charset="utf-8",
            dialect=schema.dialect.of_csv_module(),
            header=schema.use_header or schema.skip_first_row,
            columns=schema.names,
            converters={},
            comments=schema.dialect.comments,
        )
        found = self.header
        if schema.use_header and schema.strict_headers and found is not None and tuple(found) != schema.names:
            raise SerializationError(
                f"CSV file {split.path} has the columns {list(found)}, its schema says {list(schema.names)}; correct "
                "one of them, or do without set_strict_headers()"
            )

    def _to_records(self, rows: list[list[str]], line_numbers: Sequence[int]) -> list[Any]:
        records = []
        for row, line_number in zip(rows, line_numbers, strict=True):
            try:
                records.append(self._to_row(row))
            except ValueError as error:
                self._bad(line_number, row, error)
        return records


@dataclass(frozen=True)
class _RowWriterFactory(BulkWriterFactory):
    insert_only = True

    schema: CsvSchema

    def create(self, file: BinaryIO) -> BulkWriter:
        return _RowWriter(file, self.schema)


class _RowWriter(BulkWriter):
    def __init__(self, file: BinaryIO, schema: CsvSchema) -> None:
        self._file = file
        self._schema = schema
        self._to_fields = FieldsFromRow(schema.columns, schema.dialect)
        self._header_due = schema.use_header

    def add_batch(self, values: Sequence[Any]) -> None:
        rows = list(map(self._to_fields, values))
        if self._header_due and rows:
            rows.insert(0, list(self._schema.names))
            self._header_due = False
        dialect = self._schema.dialect
        text = io.StringIO()
        try:
            csv.writer(text, lineterminator=dialect.line_end, **dialect.of_csv_module()).writerows(rows)
        except csv.Error as error:
            raise SerializationError(
                f"records cannot be written as CSV: {error}; set a quote or an escape character"
            ) from None
        self._file.write(text.getvalue().encode())
