"""Parquet with a schema, at the module path where PyFlink has it."""

from __future__ import annotations

from typing import Any

from headwater.common.configuration import Configuration
from headwater.datastream.connectors.bulk_writers import BulkWriterFactory, ColumnarWriterFactory
from headwater.datastream.connectors.columnar.arrow_types import arrow_schema
from headwater.datastream.connectors.columnar.parquet import KIND, ParquetFile
from headwater.datastream.connectors.columnar.reader import RecordForm
from headwater.datastream.connectors.file_formats import ColumnarFormat
from headwater.datastream.formats.avro.arrow import arrow_schema_of_avro
from headwater.datastream.formats.avro.schema import AvroSchema, checked_schema
from headwater.datastream.no_effect import warn_no_effect

__all__ = ["AvroParquetReaders", "AvroParquetWriters", "ParquetBulkWriters", "ParquetColumnarRowInputFormat"]

_COMPRESSION = "zstd"


class ParquetColumnarRowInputFormat(ColumnarFormat):
    """Each row is a Row with the fields of `row_type`, whatever else a file has; a field that it lacks is None.

    Columns of another type are converted where no value is lost (INT to BIGINT), and are errors otherwise.
    """

    def __init__(
        self,
        row_type: Any,
        hadoop_config: Configuration | None = None,
        batch_size: int = 2048,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        """:param row_type: `Types.ROW_NAMED(...)`, the Table API's `DataTypes.ROW(...)`, or a pyarrow.Schema.
        :param batch_size: no effect: the reader chooses.
        :param is_utc_timestamp: no effect: times come as they are stored, without this machine's time zone.
        """
        ignore_hadoop("ParquetColumnarRowInputFormat(hadoop_config)", hadoop_config)
        form = RecordForm(schema=arrow_schema(row_type), rows=True, case_sensitive=is_case_sensitive)
        super().__init__(ParquetFile, KIND, form)


class ParquetBulkWriters:
    """Parquet files of rows for `FileSink.for_bulk_format`."""

    @staticmethod
    def for_row_type(
        row_type: Any, hadoop_config: Configuration | None = None, utc_timestamp: bool = False
    ) -> BulkWriterFactory:
        """Of Rows, dicts or tuples with the fields of `row_type` (see `ParquetColumnarRowInputFormat`).

        :param utc_timestamp: no effect: times are stored as they are, without this machine's time zone.
        """
        ignore_hadoop("ParquetBulkWriters.for_row_type(hadoop_config)", hadoop_config)
        return ColumnarWriterFactory(KIND, arrow_schema(row_type), _COMPRESSION)


class AvroParquetReaders:
    """Parquet files of records with an Avro schema, for `FileSource`."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> ColumnarFormat:
        """Each row is a dict of the schema's fields; one that a file lacks is None."""
        return ColumnarFormat(ParquetFile, KIND, RecordForm(schema=arrow_schema_of_avro(checked_schema(schema))))


class AvroParquetWriters:
    """Parquet files of records with an Avro schema, for `FileSink.for_bulk_format`."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Of dicts, Rows, or tuples in the order of the fields."""
        return ColumnarWriterFactory(KIND, arrow_schema_of_avro(checked_schema(schema)), _COMPRESSION)


def ignore_hadoop(setting: str, configuration: Configuration | None) -> None:
    if configuration is not None and configuration.to_dict():
        warn_no_effect(setting, "no Hadoop is used; files are opened by Python and pyarrow")
