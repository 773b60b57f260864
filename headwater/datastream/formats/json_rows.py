"""One row as one JSON object: between the bytes of a message and a Row."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import msgspec

from headwater.common.errors import ConfigurationError, SerializationError, short_repr
from headwater.common.serialization import DeserializationSchema, SerializationSchema
from headwater.common.type_system.information import (
    ARRAYS,
    BasicType,
    BasicTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TypeInformation,
)
from headwater.common.types import Row, named_row
from headwater.datastream.connectors.bulk_writers import row_for_json
from headwater.datastream.formats.json_schema import type_of_json_schema
from headwater.datastream.formats.text_fields import WHOLE_NUMBERS, fields_of, from_text, is_text_type

__all__ = ["JsonRowDeserializationSchema", "JsonRowSerializationSchema"]

_MIN_LONG: Final = -(1 << 63)
_MAX_LONG: Final = (1 << 63) - 1
_TEXT_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")
ENCODER: Final = msgspec.json.Encoder(enc_hook=row_for_json, decimal_format="number")
"""Writes Rows as objects, and decimals as the numbers that they are."""

FromJson = Callable[[Any], Any]
"""Raises ValueError for a value that is not of the type. Never gets None."""


class JsonRows:
    """Makes Rows of JSON objects: `decode` the message, then call `row` with the object. Both raise ValueError."""

    decode: Callable[[bytes], Any]
    row: FromJson

    def __init__(self, type_info: TypeInformation, strict: bool = False) -> None:
        self._type = json_row_type(type_info)
        self._strict = strict
        self.decode = json_decoder(self._type).decode
        self.row = row_from_json(self._type, strict)

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonRows, (self._type, self._strict)  # a decoder cannot be pickled


class JsonRowDeserializationSchema(DeserializationSchema):
    """A Row of the fields of a JSON object that its type names. Bad ones are errors, or None if errors are ignored."""

    def __init__(self, type_info: RowTypeInfo, fail_on_missing_field: bool, ignore_parse_errors: bool) -> None:
        self._rows = JsonRows(type_info, fail_on_missing_field)
        self._ignore_parse_errors = ignore_parse_errors

    def deserialize(self, message: bytes) -> Any:
        try:
            return self._rows.row(self._rows.decode(message))
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
            if self._ignore_parse_errors:
                return None
            raise SerializationError(
                f"JSON: {short_repr(message)}: {error}; correct it at its origin, or call ignore_parse_errors()"
            ) from None

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        return JsonRowDeserializationSchema.Builder()

    class Builder:
        """Needs `type_info` or `json_schema`."""

        def __init__(self) -> None:
            self._type_info: RowTypeInfo | None = None
            self._fail_on_missing_field = False
            self._ignore_parse_errors = False

        def type_info(self, type_info: TypeInformation) -> JsonRowDeserializationSchema.Builder:
            self._type_info = json_row_type(type_info)
            return self

        def json_schema(self, json_schema: str) -> JsonRowDeserializationSchema.Builder:
            """The type as a JSON Schema: objects, arrays, strings (also dates and times), numbers, booleans."""
            if json_schema is None:
                raise TypeError("The json_schema must not be None.")
            self._type_info = type_of_json_schema(json_schema)
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """Without it a field that is missing is None."""
            self._fail_on_missing_field = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """A message that cannot be read gives None."""
            self._ignore_parse_errors = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            if self._type_info is None:
                raise TypeError("Typeinfo should be set.")
            return JsonRowDeserializationSchema(self._type_info, self._fail_on_missing_field, self._ignore_parse_errors)


class JsonRowSerializationSchema(SerializationSchema):
    """One JSON object, without a line end, of a Row, a dict, or a tuple in the order of the fields."""

    insert_only = True

    def __init__(self, type_info: RowTypeInfo) -> None:
        self._names = type_info.get_field_names()

    def serialize(self, value: Any) -> bytes:
        try:
            values = fields_of(value, self._names)
            return ENCODER.encode(dict(zip(self._names, values, strict=True)))
        except (KeyError, TypeError, ValueError, NotImplementedError) as error:
            raise SerializationError(
                f"record {short_repr(value)} does not fit the JSON fields {self._names}: {error}"
            ) from error

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        return JsonRowSerializationSchema.Builder()

    class Builder:
        """Needs `with_type_info`."""

        def __init__(self) -> None:
            self._type_info: RowTypeInfo | None = None

        def with_type_info(self, type_info: TypeInformation) -> JsonRowSerializationSchema.Builder:
            self._type_info = json_row_type(type_info)
            return self

        def build(self) -> JsonRowSerializationSchema:
            if self._type_info is None:
                raise TypeError("Typeinfo should be set.")
            return JsonRowSerializationSchema(self._type_info)


def json_row_type(type_info: TypeInformation) -> RowTypeInfo:
    if not isinstance(type_info, RowTypeInfo):
        raise ConfigurationError(f"JSON rows: the type is {type_info!r}; expected Types.ROW or Types.ROW_NAMED")
    return type_info


def _from_json(type_info: TypeInformation, strict: bool) -> FromJson:
    if isinstance(type_info, RowTypeInfo):
        return row_from_json(type_info, strict)
    if isinstance(type_info, MapTypeInfo):
        value_of = _nullable(_from_json(type_info.value_type, strict))
        return lambda value: {key: value_of(each) for key, each in _expect(value, dict).items()}
    if isinstance(type_info, ARRAYS):
        element = _nullable(_from_json(type_info.element_type, strict))
        return lambda value: [element(each) for each in _expect(value, list)]
    if not is_text_type(type_info):
        raise ConfigurationError(f"{type_info!r} has no form in JSON; expected basic types, arrays, maps and rows")
    convert = from_text(type_info)
    whole = isinstance(type_info, BasicTypeInfo) and type_info.basic_type in WHOLE_NUMBERS

    def slow(value: Any) -> Any:
        if not isinstance(value, str):
            number = _expect(value, int | float | Decimal)
            value = str(int(number) if whole and number % 1 == 0 else number)
        return convert(value)

    if isinstance(type_info, BasicTypeInfo):
        basic = type_info.basic_type
        if basic in (BasicType.STRING, BasicType.CHAR):
            return lambda value: value if type(value) is str else _text(value)
        if basic is BasicType.BOOLEAN:
            return lambda value: value if isinstance(value, bool) else convert(_expect(value, str))
        if basic is BasicType.LONG:
            return lambda value: value if type(value) is int and _MIN_LONG <= value <= _MAX_LONG else slow(value)
        if basic in (BasicType.FLOAT, BasicType.DOUBLE):
            return lambda value: value if type(value) is float else slow(value)

    return slow


def row_from_json(type_info: RowTypeInfo, strict: bool) -> FromJson:
    """What makes a Row of a JSON object. `strict`: a field that is missing is an error, not None."""
    names = type_info.get_field_names()
    converters = [_from_json(each, strict) for each in type_info.get_field_types()]
    fields = list(zip(names, converters, strict=True))

    def convert(value: Any) -> Row:
        found = _expect(value, dict)
        if strict and (missing := [name for name in names if name not in found]):
            raise ValueError(f"the field {missing[0]!r} is missing")
        get = found.get
        try:
            values = [None if (each := get(name)) is None else convert_field(each) for name, convert_field in fields]
        except ValueError:
            raise _bad_field(found, fields) from None
        return named_row(values, names)

    return convert


def _bad_field(found: dict[str, Any], fields: list[tuple[str, FromJson]]) -> ValueError:
    for name, convert in fields:
        try:
            _nullable(convert)(found.get(name))
        except ValueError as error:
            return ValueError(f"field {name!r}: {error}")
    raise AssertionError("one of the fields was bad a moment ago")


def json_decoder(type_info: TypeInformation) -> msgspec.json.Decoder[Any]:
    """A decoder of the values that `row_from_json(type_info)` takes."""
    # Python's float would round what a column of decimals must keep.
    return msgspec.json.Decoder(float_hook=Decimal) if _has_decimals(type_info) else msgspec.json.Decoder()


def _has_decimals(type_info: TypeInformation) -> bool:
    if isinstance(type_info, RowTypeInfo):
        return any(map(_has_decimals, type_info.get_field_types()))
    if isinstance(type_info, MapTypeInfo):
        return _has_decimals(type_info.value_type)
    if isinstance(type_info, ARRAYS):
        return _has_decimals(type_info.element_type)
    return isinstance(type_info, BasicTypeInfo) and type_info.basic_type is BasicType.BIG_DEC


def _text(value: Any) -> str:
    """Flink gives the text of whatever is there."""
    return _TEXT_ENCODER.encode(value).decode()


def _nullable(convert: FromJson) -> FromJson:
    return lambda value: None if value is None else convert(value)


def _expect(value: Any, kinds: Any) -> Any:
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise ValueError(f"found {short_repr(value, 60)}")
    return value
