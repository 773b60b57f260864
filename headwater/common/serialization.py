"""Turns records into bytes and back, for sinks and sources that move bytes. As in pyflink.common.serialization."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from headwater.common.errors import ConfigurationError, SerializationError, short_repr
from headwater.common.row_changes import is_insert_only
from headwater.common.string_form import to_flink_string
from headwater.common.types import Row


class SerializationSchema(ABC):
    """Makes the bytes of one record."""

    insert_only: bool = False
    """True if rows become the same bytes whatever their kind: sinks then refuse rows that take something back."""

    @abstractmethod
    def serialize(self, value: Any) -> bytes: ...


class DeserializationSchema(ABC):
    """Makes records of the bytes of a message. Raises SerializationError for a message that it cannot read."""

    @abstractmethod
    def deserialize(self, message: bytes) -> Any:
        """The record of `message`; None if there is none in it."""

    def deserialize_all(self, message: bytes) -> list[Any]:
        """All records of `message`. A format whose messages may have several, such as changes, implements this."""
        record = self.deserialize(message)
        return [] if record is None else [record]


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Text in a character set."""

    def __init__(self, charset: str = "UTF-8") -> None:
        self._charset = _known_charset(charset)

    def serialize(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise SerializationError(
                f"SimpleStringSchema: expected str, found {type(value).__name__} {short_repr(value, 100)}; "
                "map the stream to text first"
            )
        return value.encode(self._charset)

    def deserialize(self, message: bytes) -> str:
        try:
            return message.decode(self._charset)
        except UnicodeDecodeError as error:
            raise SerializationError(
                f"SimpleStringSchema: {short_repr(message, 100)} is not {self._charset}: {error}"
            ) from None


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are."""

    def serialize(self, value: Any) -> bytes:
        if not isinstance(value, (bytes, bytearray)):
            raise SerializationError(
                f"ByteArraySchema: expected bytes, found {type(value).__name__} {short_repr(value, 100)}"
            )
        return bytes(value)

    def deserialize(self, message: bytes) -> bytes:
        return message


class RowFieldExtractorSchema(SerializationSchema):
    """One field of a row, which must be bytes already: the key of a message, for example."""

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"field_index must not be negative, found {field_index}")
        self._field_index = field_index

    def serialize(self, value: Any) -> bytes:
        if not isinstance(value, Row) or len(value) <= self._field_index:
            raise SerializationError(
                f"RowFieldExtractorSchema: expected a Row with a field {self._field_index}, found {short_repr(value)}"
            )
        field = value[self._field_index]
        if not isinstance(field, (bytes, bytearray)):
            raise SerializationError(
                f"RowFieldExtractorSchema: field {self._field_index} must be bytes, found {short_repr(field, 100)}"
            )
        return bytes(field)


class Encoder:
    """Writes records into a file, each as the bytes that `encode` makes of it (its line end included)."""

    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        self._encode = encode

    @property
    def insert_only(self) -> bool:
        """As of a `SerializationSchema`."""
        return is_insert_only(self._encode)

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """One line per record: its text as `print()` shows it for a stream with a declared type."""
        return Encoder(_LineEncoder(_known_charset(charset_name)))

    @staticmethod
    def of_schema(schema: SerializationSchema) -> Encoder:
        """One line per record: the bytes that `schema` makes of it, and a line feed unless they end with one."""
        return Encoder(_SchemaLines(schema))

    def encode(self, value: Any) -> bytes:
        return self._encode(value)


class _LineEncoder:
    """A class, not a closure: encoders are pickled with their sink."""

    def __init__(self, charset: str) -> None:
        self._charset = charset

    def __call__(self, value: Any) -> bytes:
        return (to_flink_string(value) + "\n").encode(self._charset)


class _SchemaLines:
    def __init__(self, schema: SerializationSchema) -> None:
        self._schema = schema
        self.insert_only = is_insert_only(schema)

    def __call__(self, value: Any) -> bytes:
        line = self._schema.serialize(value)
        if b"\n" in line[:-1]:
            raise SerializationError(f"record {short_repr(value)} has a line feed in its bytes: it is not one line")
        return line if line.endswith(b"\n") else line + b"\n"


class BulkWriterFactory(ABC):  # noqa: B024
    """Makes writers for formats that need all records of a file, such as Parquet. Implemented by connectors."""


def _known_charset(charset: str) -> str:
    try:
        return codecs.lookup(charset).name
    except LookupError:
        raise ConfigurationError(f"unknown character set {charset!r}; for example 'UTF-8' or 'latin-1'") from None
