"""ORC with a schema, at the module path where PyFlink has it."""

from __future__ import annotations

from typing import Any

from headwater.common.configuration import Configuration
from headwater.common.errors import ConfigurationError
from headwater.datastream.connectors.bulk_writers import BulkWriterFactory, ColumnarWriterFactory
from headwater.datastream.connectors.columnar.arrow_types import arrow_schema
from headwater.datastream.connectors.columnar.orc import KIND, OrcFile
from headwater.datastream.connectors.columnar.reader import RecordForm
from headwater.datastream.connectors.file_formats import ColumnarFormat
from headwater.datastream.formats.parquet import ignore_hadoop

__all__ = ["OrcBulkWriters", "OrcColumnarRowInputFormat"]

_COMPRESSION_KEY = "orc.compress"


class OrcColumnarRowInputFormat(ColumnarFormat):
    """Each row is a Row with the fields of `row_type`, as with `ParquetColumnarRowInputFormat`."""

    def __init__(self, row_type: Any, is_case_sensitive: bool = True) -> None:
        form = RecordForm(schema=_without_times(row_type), rows=True, case_sensitive=is_case_sensitive)
        super().__init__(OrcFile, KIND, form)


class OrcBulkWriters:
    """ORC files of rows for `FileSink.for_bulk_format`."""

    @staticmethod
    def for_row_type(
        row_type: Any, writer_properties: Configuration | None = None, hadoop_config: Configuration | None = None
    ) -> BulkWriterFactory:
        """Of Rows, dicts or tuples with the fields of `row_type`: `Types.ROW_NAMED(...)`, `DataTypes.ROW(...)` or a
        pyarrow.Schema.

        :param writer_properties: `orc.compress` is none, zlib, snappy, lz4 or zstd (the default). Others are refused.
        """
        ignore_hadoop("OrcBulkWriters.for_row_type(hadoop_config)", hadoop_config)
        given = {} if writer_properties is None else writer_properties.to_dict()
        compression = given.pop(_COMPRESSION_KEY, "zstd").lower()
        if given:
            raise ConfigurationError(f"OrcBulkWriters: unknown property {min(given)!r}; expected {_COMPRESSION_KEY!r}")
        if compression not in ("none", "zlib", "snappy", "lz4", "zstd"):
            raise ConfigurationError(f"OrcBulkWriters: {_COMPRESSION_KEY} is {compression!r}; for example 'zstd'")
        return ColumnarWriterFactory(
            KIND, _without_times(row_type), "uncompressed" if compression == "none" else compression
        )


def _without_times(row_type: Any) -> Any:
    from pyarrow import types

    schema = arrow_schema(row_type)
    for field in schema:
        if types.is_time(field.type):
            raise ConfigurationError(f"field {field.name!r}: ORC has no times of day; use text or a number")
    return schema
