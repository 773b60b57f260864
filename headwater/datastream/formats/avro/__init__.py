"""Avro: messages and files, at the module path where PyFlink has it. Needs `headwater[avro]`."""

from headwater.datastream.formats.avro.confluent import (
    ConfluentRegistryAvroDeserializationSchema,
    ConfluentRegistryAvroSerializationSchema,
)
from headwater.datastream.formats.avro.files import AvroBulkWriters, AvroInputFormat, AvroReaders
from headwater.datastream.formats.avro.rows import (
    AvroDeserializationSchema,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSerializationSchema,
)
from headwater.datastream.formats.avro.schema import AvroSchema, GenericRecordAvroTypeInfo

__all__ = [
    "AvroBulkWriters",
    "AvroDeserializationSchema",
    "AvroInputFormat",
    "AvroReaders",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "AvroSerializationSchema",
    "ConfluentRegistryAvroDeserializationSchema",
    "ConfluentRegistryAvroSerializationSchema",
    "GenericRecordAvroTypeInfo",
]
