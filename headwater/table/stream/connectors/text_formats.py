"""Readers of JSON and CSV whose rows have the values of the table's columns."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec

from headwater.common.errors import SerializationError, SqlError, short_repr
from headwater.common.serialization import DeserializationSchema, SerializationSchema
from headwater.common.types import Row, named_row
from headwater.datastream.formats.csv_schema import CsvDialect
from headwater.datastream.formats.json_rows import JsonRows
from headwater.table.stream.connectors.contract import Field
from headwater.table.stream.connectors.field_values import Fields, has_decimals, plain
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType, RowField, RowType


class ColumnRows(JsonRows):
    """Rows of columns, made of JSON objects. `lenient`: a field that does not fit is NULL."""

    def __init__(self, row_type: RowType, strict: bool, lenient: bool) -> None:
        self._given = (row_type, strict, lenient)
        decoder = msgspec.json.Decoder(float_hook=Decimal) if has_decimals(row_type) else msgspec.json.Decoder()
        self.decode = decoder.decode
        self.row = Fields(lenient, strict).row(row_type)

    def __reduce__(self) -> tuple[Any, ...]:
        return ColumnRows, self._given


class JsonReader(DeserializationSchema):
    """A Row of a JSON object. `ignore`: what is no JSON object is no row, and a field that does not fit is NULL."""

    def __init__(self, fields: Sequence[Field], strict: bool, ignore: bool, option: str) -> None:
        self._given = (fields, strict, ignore, option)
        self._rows = ColumnRows(row_type(fields), strict, ignore)

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonReader, self._given

    def deserialize(self, message: bytes) -> Any:
        _, _, ignore, option = self._given
        try:
            return self._rows.row(self._rows.decode(message))
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
            if ignore:
                return None
            raise unreadable("JSON", message, error, option) from None


class CsvReader(DeserializationSchema):
    """A Row of one CSV record. `ignore`: a field that does not fit or is missing is NULL; a line that is no record, or
    has too many fields, is no row."""

    def __init__(self, fields: Sequence[Field], dialect: CsvDialect, ignore: bool, option: str) -> None:
        self._given = (fields, dialect, ignore, option)
        self._names = [each.name for each in fields]
        made = Fields(lenient=ignore)
        self._columns = [
            (made.nullable(each.type, each.name), is_text(each.type), _separator(each, dialect)) for each in fields
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        return CsvReader, self._given

    def deserialize(self, message: bytes) -> Any:
        _, dialect, ignore, option = self._given
        try:
            text = message.decode()
            if dialect.comments and text.startswith("#"):
                return None
            (found,) = csv.reader([text], strict=True, **dialect.of_csv_module())
            if len(found) > len(self._names) or (len(found) < len(self._names) and not ignore):
                raise ValueError(f"{len(found)} fields where {len(self._names)} were expected: {self._names}")
            fields: list[str | None] = [*found, *[None] * (len(self._names) - len(found))]
            return named_row(
                [self._value(each, *column, dialect.null) for each, column in zip(fields, self._columns, strict=True)],
                self._names,
            )
        except (ValueError, csv.Error) as error:
            if ignore:
                return None
            raise unreadable("CSV", message, error, option) from None

    @staticmethod
    def _value(field: str | None, convert: Any, is_text: bool, separator: str | None, null: str | None) -> Any:
        if field == null or (not field and null is None and not is_text):
            return None  # an empty number is NULL if nothing else stands for NULL
        if separator is None or field is None:
            return convert(field)
        return convert(field.split(separator) if separator else [field]) if field else []


class PlainWriter(SerializationSchema):
    """Writes Rows of columns whose values JSON and CSV do not have as they are."""

    def __init__(self, inner: SerializationSchema, fields: Sequence[Field]) -> None:
        self._given = (inner, fields)
        self._inner = inner
        made = ((each.name, plain(each.type)) for each in fields)
        self._columns = [(name, convert) for name, convert in made if convert is not None]

    def __reduce__(self) -> tuple[Any, ...]:
        return PlainWriter, self._given

    def serialize(self, value: Any) -> Any:
        if self._columns:
            row = Row.of_kind(value.get_row_kind(), *value)
            row.set_field_names(value.get_field_names())
            for name, convert in self._columns:
                if (found := row[name]) is not None:
                    row[name] = convert(found)
            value = row
        return self._inner.serialize(value)


def is_text(type_: LogicalType) -> bool:
    return type_.root in (t.TypeRoot.CHAR, t.TypeRoot.VARCHAR, t.TypeRoot.ARRAY)


def _separator(field: Field, dialect: CsvDialect) -> str | None:
    if isinstance(field.type, t.RowType | t.MapType | t.MultisetType):
        raise SqlError(f"column '{field.name}' is {field.type.sql()}, which has no form in CSV")
    return dialect.array_separator if isinstance(field.type, t.ArrayType) else None


def row_type(fields: Sequence[Field]) -> RowType:
    return RowType(fields=tuple(RowField(each.name, each.type) for each in fields))


def unreadable(what: str, message: bytes, error: Exception, option: str) -> SerializationError:
    return SerializationError(
        f"{what}: {short_repr(message)}: {error}; correct it at its origin, or set '{option}' = 'true', which makes"
        " NULL of such fields and skips lines that cannot be read at all"
    )
