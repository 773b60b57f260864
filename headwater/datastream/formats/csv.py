"""CSV with a schema, at the module path where PyFlink has it."""

from headwater.datastream.formats.csv_files import CsvBulkWriters, CsvReaderFormat
from headwater.datastream.formats.csv_rows import CsvRowDeserializationSchema, CsvRowSerializationSchema
from headwater.datastream.formats.csv_schema import CsvSchema, CsvSchemaBuilder

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]
