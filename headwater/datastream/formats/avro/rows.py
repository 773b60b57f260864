"""One record as the bytes of one Avro message, without a header: both sides must know the schema."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from headwater.common.errors import ConfigurationError, SerializationError, short_repr
from headwater.common.serialization import DeserializationSchema, SerializationSchema
from headwater.datastream.formats.avro.schema import AvroSchema, checked_schema, fastavro
from headwater.datastream.formats.avro.values import to_avro, to_rows

__all__ = [
    "AvroDeserializationSchema",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSerializationSchema",
]


class AvroDecoder:
    """Bytes to records of `reader`, written with `writer` (the same, if None)."""

    def __init__(self, reader: AvroSchema, writer: AvroSchema | None = None, *, rows: bool = False) -> None:
        self._writer = writer or reader
        self._written = self._writer.parsed
        self._reader = None if writer is None or writer == reader else reader.parsed
        self._read = fastavro().schemaless_reader
        self._convert = to_rows(reader, in_order=self._reader is None) if rows else None

    def decode(self, message: bytes, start: int = 0) -> Any:
        """The record in `message` from byte `start` on. SerializationError if the bytes are no such record."""
        stream = BytesIO(message)
        if start:
            stream.seek(start)
        try:
            record = self._read(stream, self._written, self._reader)
        except Exception as error:  # fastavro raises whatever the wrong bytes lead to
            raise SerializationError(
                f"Avro: {short_repr(message, 200)} cannot be read as {self._writer.record_name}: {_said(error)}"
            ) from error
        if (end := stream.tell()) != len(message):
            raise SerializationError(
                f"Avro: {short_repr(message, 200)} has {len(message)} bytes, but a {self._writer.record_name} ends "
                f"after {end}: it was written with another schema"
            )
        return record if self._convert is None else self._convert(record)


class AvroEncoder:
    """Records to bytes."""

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema
        self._convert = to_avro(schema)
        self._write = fastavro().schemaless_writer

    def encode(self, value: Any, stream: BytesIO) -> None:
        """Append `value` to `stream`. SerializationError, which names field and value, if it does not fit."""
        try:
            self._write(stream, self._schema.parsed, self._convert(value))
        except (ValueError, TypeError, OverflowError) as error:
            raise SerializationError(
                f"Avro: record {short_repr(value)} is no {self._schema.record_name}: {error}"
            ) from None


class AvroDeserializationSchema(DeserializationSchema):
    """A dict of one Avro message. Made by `for_generic`."""

    def __init__(self, schema: AvroSchema, writer_schema: AvroSchema | None = None, rows: bool = False) -> None:
        self._settings: tuple[Any, ...] = (checked_schema(schema), writer_schema, rows)
        self._decoder = AvroDecoder(schema, writer_schema, rows=rows)

    @staticmethod
    def for_generic(schema: AvroSchema, writer_schema: AvroSchema | None = None) -> AvroDeserializationSchema:
        """:param writer_schema: what the messages were written with, if that is another version of `schema`."""
        return AvroDeserializationSchema(schema, writer_schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._settings

    def deserialize(self, message: bytes) -> Any:
        return self._decoder.decode(message)


class AvroSerializationSchema(SerializationSchema):
    """One Avro message of a dict, a Row, or a tuple in the order of the fields."""

    insert_only = True

    def __init__(self, schema: AvroSchema) -> None:
        self._settings: tuple[Any, ...] = (checked_schema(schema),)
        self._encoder = AvroEncoder(schema)

    @staticmethod
    def for_generic(schema: AvroSchema) -> AvroSerializationSchema:
        return AvroSerializationSchema(schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._settings

    def serialize(self, value: Any) -> bytes:
        stream = BytesIO()
        self._encoder.encode(value, stream)
        return stream.getvalue()


class AvroRowDeserializationSchema(AvroDeserializationSchema):
    """A Row of one Avro message, records in it as Rows, times naive in UTC."""

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        super().__init__(_schema_of(record_class, avro_schema_string), rows=True)

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroRowDeserializationSchema, (None, str(self._settings[0]))


class AvroRowSerializationSchema(AvroSerializationSchema):
    """One Avro message of a Row."""

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        super().__init__(_schema_of(record_class, avro_schema_string))

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroRowSerializationSchema, (None, str(self._settings[0]))


def _schema_of(record_class: str | None, avro_schema_string: str | None) -> AvroSchema:
    if record_class is not None:
        raise ConfigurationError(
            f"Avro: {record_class!r} is a Java class; give the schema's text as avro_schema_string"
        )
    if avro_schema_string is None:
        raise TypeError("record_class or avro_schema_string should be specified.")
    return AvroSchema.parse_string(avro_schema_string)


def _said(error: Exception) -> str:
    return str(error) or ("the bytes end too early" if isinstance(error, EOFError) else type(error).__name__)
