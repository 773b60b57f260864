"""Values of an Avro schema, between what people have (Rows, dicts, naive times) and what fastavro reads and writes.

fastavro writes 1.5 as the long 1, "2" as the double 2.0, and a time without a zone as one of this machine's zone. What
is to be written is checked here, so that such a value is an error that names its field.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final, TypeAlias

from headwater.common.errors import short_repr
from headwater.common.types import Row, named_row
from headwater.datastream.formats.avro.schema import AvroSchema

Convert: TypeAlias = Callable[[Any], Any]
"""Raises ValueError, which names the field, for a value that does not fit."""

_BITS: Final = {"int": 31, "long": 63}
_LARGEST_FLOAT: Final = 3.4028235677973366e38
_INSTANTS: Final = frozenset({"timestamp-millis", "timestamp-micros", "timestamp-nanos"})
_LOGICAL_CLASSES: Final[dict[str, Any]] = {
    **dict.fromkeys(_INSTANTS, datetime),
    "local-timestamp-millis": datetime,
    "local-timestamp-micros": datetime,
    "date": date,
    "time-millis": time,
    "time-micros": time,
    "uuid": uuid.UUID,
}


def to_rows(schema: AvroSchema, *, in_order: bool) -> Convert:
    """What makes Rows of the records that fastavro returns. Times are naive and in UTC, as Flink's rows have them.

    A union of several types keeps what it is: records in it stay dicts.

    :param in_order: records have their fields in the order of `schema`: they were written with it.
    """
    return _Reading(schema, in_order).of(schema.parsed) or _unchanged


def to_avro(schema: AvroSchema) -> Convert:
    """What makes of Rows, dicts, or tuples in the order of the fields, the records that fastavro writes."""
    return _Writing(schema).of(schema.parsed)


def _unchanged(value: Any) -> Any:
    return value


class _Reading:
    """Compiles converters; None where fastavro's value is kept."""

    def __init__(self, schema: AvroSchema, in_order: bool) -> None:
        self._named = schema.named_types
        self._in_order = in_order
        self._records: dict[str, Convert] = {}  # by name, for records that contain themselves

    def of(self, schema: Any) -> Convert | None:
        if isinstance(schema, str):
            return self.of(self._named[schema]) if schema in self._named else None
        if isinstance(schema, list):
            others = [each for each in schema if each != "null"]
            inner = self.of(others[0]) if len(others) == 1 else None
            return None if inner is None else _nullable(inner)
        kind = schema["type"]
        if schema.get("logicalType") in _INSTANTS:
            return lambda value: value.replace(tzinfo=None)
        if kind == "record":
            return self._record(schema)
        inner = self.of(schema["items"] if kind == "array" else schema["values"]) if kind in ("array", "map") else None
        if inner is None:
            return None
        convert = inner
        if kind == "array":
            return lambda values: [convert(value) for value in values]
        return lambda entries: {key: convert(value) for key, value in entries.items()}

    def _record(self, schema: Any) -> Convert:
        name = schema["name"]
        if name in self._records:
            return lambda value: self._records[name](value)
        self._records[name] = _unchanged  # until it is compiled, for records in it
        names = [field["name"] for field in schema["fields"]]
        converters = [(field["name"], self.of(field["type"])) for field in schema["fields"]]
        changed = [(field, convert) for field, convert in converters if convert is not None]

        def convert_record(record: dict[str, Any]) -> Row:
            for field, convert in changed:
                record[field] = convert(record[field])
            return named_row([record[field] for field in names], names)

        def convert_in_order(record: dict[str, Any]) -> Row:
            for field, convert in changed:
                record[field] = convert(record[field])
            return named_row(list(record.values()), names)

        self._records[name] = convert_in_order if self._in_order else convert_record
        return self._records[name]


class _Writing:
    """Compiles converters that check."""

    def __init__(self, schema: AvroSchema) -> None:
        self._named = schema.named_types
        self._records: dict[str, Convert] = {}

    def of(self, schema: Any) -> Convert:
        if isinstance(schema, str):
            return self.of(self._named[schema]) if schema in self._named else _plain(schema)
        if isinstance(schema, list):
            return self._union(schema)
        kind, logical = schema["type"], schema.get("logicalType")
        if logical == "decimal":
            return _decimal(schema["precision"], schema.get("scale", 0))
        if logical in _LOGICAL_CLASSES:
            return _logical(logical, kind)
        if kind == "record":
            return self._record(schema)
        if kind == "array":
            item = self.of(schema["items"])
            return lambda values: [_at(index, item, value) for index, value in enumerate(_is(values, (list, tuple)))]
        if kind == "map":
            entry = self.of(schema["values"])
            return lambda entries: {
                _is(key, str): _at(key, entry, value) for key, value in _is(entries, Mapping).items()
            }
        if kind == "enum":
            return _one_of(frozenset(schema["symbols"]))
        if kind == "fixed":
            return _fixed(schema["size"])
        return self.of(kind)

    def _union(self, branches: list[Any]) -> Convert:
        others = [each for each in branches if each != "null"]
        if len(others) == 1:
            inner = self.of(others[0])
            return _nullable(inner) if "null" in branches else inner
        known = [(_branch_name(each), self.of(each)) for each in others]

        def convert(value: Any) -> Any:
            if value is None and "null" in branches:
                return None
            for name, each in known:
                try:
                    converted = each(value)
                except ValueError:
                    continue
                return converted if name is None else (name, converted)
            raise ValueError(f"found {_shown(value)}, which fits none of {[_type_name(each) for each in branches]}")

        return convert

    def _record(self, schema: Any) -> Convert:
        name = schema["name"]
        if name in self._records:
            return lambda value: self._records[name](value)
        self._records[name] = _unchanged
        fields = [(field["name"], self.of(field["type"]), "default" in field) for field in schema["fields"]]
        names = [field for field, _, _ in fields]

        def convert(value: Any) -> dict[str, Any]:
            given = _fields(value, names)
            return {
                field: _at(field, convert_field, given.get(field))
                for field, convert_field, has_default in fields
                if not (has_default and field not in given)
            }

        self._records[name] = convert
        return convert


def _fields(value: Any, names: list[str]) -> Mapping[str, Any]:
    if isinstance(value, Row) and value.get_field_names():
        value = value.as_dict()
    if isinstance(value, Mapping):
        unknown = [name for name in value if name not in names]
        if unknown:
            raise ValueError(f"the schema has no field {unknown[0]!r}; it has {names}")
        return value
    if not isinstance(value, (Row, tuple, list)) or len(value) != len(names):
        raise ValueError(f"found {_shown(value)}; expected a record with the fields {names}")
    return dict(zip(names, value, strict=True))


def _at(where: object, convert: Convert, value: Any) -> Any:
    try:
        return convert(value)
    except ValueError as error:
        text = str(error)
        inner = text.removeprefix("field ")
        dot = "." if inner is not text else ": "
        raise ValueError(f"field {where}{dot}{inner}") from None


def _nullable(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _plain(kind: str) -> Convert:
    if kind in _BITS:
        limit = 1 << _BITS[kind]

        def whole(value: Any) -> int:
            if type(value) is not int and (isinstance(value, bool) or not hasattr(value, "__index__")):
                raise ValueError(f"found {_shown(value)}; expected {kind}")
            number = int(value)
            if not -limit <= number < limit:
                raise ValueError(f"{number} does not fit into {kind}")
            return number

        return whole
    if kind in ("float", "double"):

        def real(value: Any) -> float:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ValueError(f"found {_shown(value)}; expected {kind}")
            number = float(value)
            if kind == "float" and abs(number) > _LARGEST_FLOAT and not math.isinf(number):
                raise ValueError(f"{number} does not fit into float")
            return number

        return real
    if kind == "bytes":
        return lambda value: bytes(_is(value, (bytes, bytearray)))
    if kind == "null":
        return _null
    classes = {"string": str, "boolean": bool}
    return lambda value: _is(value, classes[kind])


def _null(value: Any) -> None:
    if value is not None:
        raise ValueError(f"found {_shown(value)}; expected None")


def _decimal(precision: int, scale: int) -> Convert:
    exact = Context(prec=precision, traps=[Inexact, InvalidOperation])
    unit = Decimal(1).scaleb(-scale)

    def convert(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, (Decimal, int)):
            raise ValueError(f"found {_shown(value)}; expected a Decimal")
        number = Decimal(value)
        try:
            if number.is_finite():
                return exact.quantize(number, unit)
        except (Inexact, InvalidOperation):
            pass
        raise ValueError(f"{number} does not fit into decimal({precision}, {scale})")

    return convert


def _logical(logical: str, kind: str) -> Convert:
    expected = _LOGICAL_CLASSES[logical]
    number = _plain(kind) if kind in _BITS else None

    def convert(value: Any) -> Any:
        if isinstance(value, expected) and not (expected is date and isinstance(value, datetime)):
            if logical in _INSTANTS and value.tzinfo is None:
                return value.replace(tzinfo=UTC)
            if expected is uuid.UUID:
                return str(value)
            return value
        if number is not None and isinstance(value, int):
            return number(value)
        if logical == "uuid" and isinstance(value, str):
            return str(uuid.UUID(value))
        raise ValueError(f"found {_shown(value)}; expected {expected.__name__} ({logical})")

    return convert


def _one_of(symbols: frozenset[str]) -> Convert:
    def convert(value: Any) -> Any:
        if value not in symbols:
            raise ValueError(f"found {_shown(value)}; expected one of {sorted(symbols)}")
        return value

    return convert


def _fixed(size: int) -> Convert:
    def convert(value: Any) -> bytes:
        if len(_is(value, (bytes, bytearray))) != size:
            raise ValueError(f"found {len(value)} bytes; expected {size}")
        return bytes(value)

    return convert


def _branch_name(schema: Any) -> str | None:
    """How fastavro is told which branch of a union is meant; None if it finds it by itself."""
    if isinstance(schema, str):
        return schema
    return schema["name"] if schema["type"] in ("record", "enum", "fixed") else None


def _type_name(schema: Any) -> str:
    return schema if isinstance(schema, str) else str(schema.get("name") or schema["type"])


def _is(value: Any, classes: Any) -> Any:
    if not isinstance(value, classes):
        expected = classes if isinstance(classes, tuple) else (classes,)
        raise ValueError(f"found {_shown(value)}; expected {' or '.join(each.__name__ for each in expected)}")
    return value


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {short_repr(value, 100)}"
