"""Avro schemas, and the type of records that have one."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from headwater.common.errors import ConfigurationError
from headwater.common.optional_library import optional_library
from headwater.common.type_system.information import PickledBytesTypeInfo

__all__ = ["AvroSchema", "GenericRecordAvroTypeInfo"]


def fastavro() -> Any:
    return optional_library("fastavro", "avro", "Avro")


class AvroSchema:
    """A parsed Avro schema. Made by `parse_string` or `parse_file`; equal if its text means the same."""

    def __init__(self, schema_string: str, references: tuple[str, ...] = ()) -> None:
        """:param references: the texts of schemas whose named types this one uses, in the order of their use."""
        self._text = schema_string
        self._references = references
        self.named_types: dict[str, Any] = {}
        """{full name: schema} of the records, enums and fixed types that this schema may name."""
        self._parsed = _parse(schema_string, references, self.named_types)

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """The schema that the JSON text `json_schema` describes."""
        return AvroSchema(json_schema)

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """The schema in a file, usually called `.avsc`."""
        try:
            return AvroSchema(Path(file_path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigurationError(f"Avro schema {file_path!r} cannot be read: {error.strerror or error}") from error

    @property
    def parsed(self) -> Any:
        """As fastavro takes it. Not to be changed."""
        return self._parsed

    @cached_property
    def record_name(self) -> str:
        """The full name of the record; ConfigurationError if the schema is not that of a record."""
        if not isinstance(self._parsed, dict) or self._parsed.get("type") != "record":
            raise ConfigurationError(f"Avro: expected the schema of a record, found {self._text[:200]}")
        return str(self._parsed["name"])

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"AvroSchema({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AvroSchema) and self._parsed == other._parsed

    def __hash__(self) -> int:
        return hash(json.dumps(self._parsed, sort_keys=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroSchema, (self._text, self._references)


class GenericRecordAvroTypeInfo(PickledBytesTypeInfo):
    """The type of records with an Avro schema. Here they are dicts; whoever writes them checks them."""

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = checked_schema(schema)

    @property
    def schema(self) -> AvroSchema:
        return self._schema

    def _identity(self) -> tuple[Any, ...]:
        return GenericRecordAvroTypeInfo, self._schema

    def __repr__(self) -> str:
        return f"GenericRecordAvroTypeInfo({self._schema.record_name})"


def checked_schema(schema: object) -> AvroSchema:
    """Return `schema`; ConfigurationError if it is something else than a record's schema."""
    if not isinstance(schema, AvroSchema):
        raise ConfigurationError(f"Avro: expected an AvroSchema, found {schema!r}; AvroSchema.parse_string() makes one")
    _ = schema.record_name
    return schema


def _parse(text: str, references: tuple[str, ...], named: dict[str, Any]) -> Any:
    library = fastavro()
    try:
        for reference in references:
            library.parse_schema(json.loads(reference), named_schemas=named)
        return library.parse_schema(json.loads(text), named_schemas=named)
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"Avro schema is not JSON: {error}; it begins {text[:100]!r}") from None
    except (library.schema.SchemaParseException, library.schema.UnknownType, KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(f"Avro schema cannot be used: {error}; it begins {text[:100]!r}") from None
