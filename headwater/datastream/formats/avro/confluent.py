"""Avro messages that name their schema: a zero byte, the schema's id in a registry, the record."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any

from headwater.common.errors import ConfigurationError, SerializationError
from headwater.common.serialization import DeserializationSchema, SerializationSchema
from headwater.datastream.formats.avro.rows import AvroDecoder, AvroEncoder
from headwater.datastream.formats.avro.schema import AvroSchema, checked_schema
from headwater.datastream.formats.schema_registry import (
    FRAME_BYTES,
    SchemaRegistryClient,
    SchemaRegistryError,
    framed,
    schema_id_of,
)

__all__ = ["ConfluentRegistryAvroDeserializationSchema", "ConfluentRegistryAvroSerializationSchema"]

_NOT_FOUND = 404
_NO_AVRO = 0
"""The registry has answered, with a schema of another kind."""


class ConfluentRegistryAvroDeserializationSchema(DeserializationSchema):
    """Records of one schema, whatever version of it each message was written with. Made by `for_generic` or `for_rows`.

    Each id is asked for once per process. A registry that does not answer fails the job after some seconds: the restart
    strategy says what then. A message whose schema does not exist, or cannot become the reader's, is a bad message.
    """

    def __init__(self, schema: AvroSchema | None, registry: SchemaRegistryClient, rows: bool = False) -> None:
        self._schema = None if schema is None else checked_schema(schema)
        self._registry = registry
        self._rows = rows
        self._decoders: dict[int, AvroDecoder] = {}  # by schema id

    @staticmethod
    def for_generic(
        schema: AvroSchema | None, url: str, registry_configs: Mapping[str, str] | None = None
    ) -> ConfluentRegistryAvroDeserializationSchema:
        """Dicts with the fields of `schema`; None: with those of the schema that each message was written with."""
        return ConfluentRegistryAvroDeserializationSchema(schema, SchemaRegistryClient(url, registry_configs))

    @staticmethod
    def for_rows(
        schema: AvroSchema | None, url: str, registry_configs: Mapping[str, str] | None = None
    ) -> ConfluentRegistryAvroDeserializationSchema:
        """Like `for_generic`, but Rows."""
        return ConfluentRegistryAvroDeserializationSchema(schema, SchemaRegistryClient(url, registry_configs), True)

    def __reduce__(self) -> tuple[Any, ...]:
        return ConfluentRegistryAvroDeserializationSchema, (self._schema, self._registry, self._rows)

    def deserialize(self, message: bytes) -> Any:
        schema_id = schema_id_of(message)
        decoder = self._decoders.get(schema_id)
        if decoder is None:
            decoder = self._decoders[schema_id] = self._decoder(schema_id)
        return decoder.decode(message, FRAME_BYTES)

    def _decoder(self, schema_id: int) -> AvroDecoder:
        try:
            found = self._registry.schema(schema_id)
        except SchemaRegistryError as error:
            if error.status in (_NOT_FOUND, _NO_AVRO):
                raise SerializationError(str(error)) from error
            raise
        try:
            writer = AvroSchema(found.text, found.references)
            return AvroDecoder(self._schema or writer, writer, rows=self._rows)
        except ConfigurationError as error:
            raise SerializationError(f"schema {schema_id} of {self._registry}: {error}") from error


class ConfluentRegistryAvroSerializationSchema(SerializationSchema):
    """Framed messages of dicts, Rows, or tuples. The schema is registered when the first one is written."""

    insert_only = True

    def __init__(self, subject: str, schema: AvroSchema, registry: SchemaRegistryClient, auto_register: bool) -> None:
        if not isinstance(subject, str) or not subject:
            raise ConfigurationError(f"Avro: expected a subject such as 'orders-value', found {subject!r}")
        self._settings = (subject, checked_schema(schema), registry, auto_register)
        self._encoder = AvroEncoder(schema)
        self._frame: bytes | None = None

    @staticmethod
    def for_generic(
        subject: str,
        schema: AvroSchema,
        url: str,
        registry_configs: Mapping[str, str] | None = None,
        auto_register: bool = True,
    ) -> ConfluentRegistryAvroSerializationSchema:
        """:param auto_register: False: the registry must have the schema under `subject` already."""
        registry = SchemaRegistryClient(url, registry_configs)
        return ConfluentRegistryAvroSerializationSchema(subject, schema, registry, auto_register)

    def __reduce__(self) -> tuple[Any, ...]:
        return ConfluentRegistryAvroSerializationSchema, self._settings

    def serialize(self, value: Any) -> bytes:
        if self._frame is None:
            subject, schema, registry, auto_register = self._settings
            find = registry.register if auto_register else registry.lookup
            self._frame = framed(find(subject, str(schema)))
        stream = BytesIO()
        stream.write(self._frame)
        self._encoder.encode(value, stream)
        return stream.getvalue()
