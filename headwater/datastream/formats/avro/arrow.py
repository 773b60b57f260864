"""The Arrow schema of records with an Avro schema, for Parquet files of such records."""

from __future__ import annotations

from typing import Any, Final

from headwater.common.errors import ConfigurationError
from headwater.datastream.formats.avro.schema import AvroSchema

_PLAIN: Final = {
    "null": "null",
    "boolean": "bool_",
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "bytes": "binary",
    "string": "string",
    "enum": "string",
}
_TIMES: Final = {
    "timestamp-millis": ("ms", "UTC"),
    "timestamp-micros": ("us", "UTC"),
    "local-timestamp-millis": ("ms", None),
    "local-timestamp-micros": ("us", None),
}


def arrow_schema_of_avro(schema: AvroSchema) -> Any:
    """A pyarrow.Schema. ConfigurationError for what Arrow has no type for: unions of several types, recursion."""
    import pyarrow

    return pyarrow.schema(_Compiler(schema).fields(schema.parsed, ()))


class _Compiler:
    def __init__(self, schema: AvroSchema) -> None:
        self._named = schema.named_types

    def fields(self, record: Any, around: tuple[str, ...]) -> list[Any]:
        import pyarrow

        if record["name"] in around:
            raise ConfigurationError(f"Avro: record {record['name']!r} contains itself, which columns cannot")
        inner = (*around, record["name"])
        found = []
        for field in record["fields"]:
            nullable = isinstance(field["type"], list) and "null" in field["type"]
            found.append(pyarrow.field(field["name"], self._of(field["type"], field["name"], inner), nullable=nullable))
        return found

    def _of(self, schema: Any, field: str, around: tuple[str, ...]) -> Any:
        import pyarrow

        if isinstance(schema, list):
            others = [each for each in schema if each != "null"]
            if len(others) != 1:
                raise ConfigurationError(f"Avro: field {field!r} is a union of several types, which columns cannot be")
            return self._of(others[0], field, around)
        if isinstance(schema, str):
            known = self._named.get(schema)
            return getattr(pyarrow, _PLAIN[schema])() if known is None else self._of(known, field, around)
        kind, logical = schema["type"], schema.get("logicalType")
        if logical == "decimal":
            return pyarrow.decimal128(schema["precision"], schema.get("scale", 0))
        if logical in _TIMES:
            return pyarrow.timestamp(*_TIMES[logical])
        if logical in ("time-millis", "time-micros"):
            return pyarrow.time32("ms") if logical == "time-millis" else pyarrow.time64("us")
        if logical == "date":
            return pyarrow.date32()
        if kind == "record":
            return pyarrow.struct(self.fields(schema, around))
        if kind == "array":
            return pyarrow.list_(self._of(schema["items"], field, around))
        if kind == "map":
            return pyarrow.map_(pyarrow.string(), self._of(schema["values"], field, around))
        if kind == "fixed":
            return pyarrow.binary(schema["size"])
        return getattr(pyarrow, _PLAIN[kind])()
