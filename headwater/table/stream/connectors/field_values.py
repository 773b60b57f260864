"""One field of JSON or CSV as a value of a column, by Flink's rules, and a value as such a field."""

from __future__ import annotations

import base64
import binascii
import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec
import numpy as np

from headwater.common.errors import SqlError, short_repr
from headwater.common.types import Row, named_row
from headwater.table.batch.rows import sql_text
from headwater.table.functions.casting.from_text import fit_decimal, read_date, read_time_ms, read_timestamp_us
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType

FromField = Callable[[Any], Any]
"""Raises ValueError for a field that is not of the type. Never gets None."""

_BITS: Final = {t.TypeRoot.TINYINT: 8, t.TypeRoot.SMALLINT: 16, t.TypeRoot.INTEGER: 32, t.TypeRoot.BIGINT: 64}
_DAY: Final = datetime.date(1970, 1, 1)
_START: Final = datetime.datetime(1970, 1, 1)
_CALLED: Final[dict[Any, str]] = {dict: "an object", list: "an array", str: "a text"}
_TEXTS: Final = msgspec.json.Encoder(decimal_format="number")


class FieldError(ValueError):
    """A field does not fit its type. The text names field, type and value."""


@dataclass(frozen=True)
class Fields:
    """How fields become values. `lenient`: one that does not fit is NULL, at each level of rows, arrays and maps."""

    lenient: bool = False
    strict: bool = False
    """A field that is missing from a row is an error, not NULL."""

    def nullable(self, type_: LogicalType, name: str) -> FromField:
        """What makes a value of a field that may be None."""
        convert = self.of(type_, name)

        def checked(value: Any) -> Any:
            if value is None:
                return None
            try:
                return convert(value)
            except FieldError:
                raise
            except (ValueError, ArithmeticError, TypeError) as error:
                if self.lenient:
                    return None
                why = f" ({error})" if str(error) else ""
                raise FieldError(f"field '{name}' is {type_.sql()}, found {short_repr(value, 60)}{why}") from None

        return checked

    def row(self, type_: t.RowType, where: str = "") -> FromField:
        """What makes a Row of a JSON object."""
        names = [each.name for each in type_.fields]
        fields = [(each.name, self.nullable(each.type, f"{where}{each.name}")) for each in type_.fields]

        def convert(value: Any) -> Row:
            found = _expect(value, dict)
            if self.strict:
                for name in names:
                    if name not in found:
                        raise FieldError(f"field '{where}{name}' is missing")
            get = found.get
            return named_row([each(get(name)) for name, each in fields], names)

        return convert

    def of(self, type_: LogicalType, name: str) -> FromField:
        match type_:
            case t.RowType():
                return self.row(type_, f"{name}.")
            case t.ArrayType():
                element = self.nullable(type_.element, f"{name}[]")
                return lambda value: [element(each) for each in _expect(value, list)]
            case t.MapType():
                return self._map(type_.key, type_.value, name)
            case t.MultisetType():
                return self._map(type_.element, t.INT, name)
            case t.DecimalType():
                return _decimal(type_)
            case t.TimestampType() | t.LocalZonedTimestampType():
                return _timestamp(type_)
            case t.DateType():
                return lambda value: _DAY + datetime.timedelta(read_date(_expect(value, str)))
            case t.TimeType():
                return lambda value: (
                    _START + datetime.timedelta(milliseconds=read_time_ms(_expect(value, str)))
                ).time()
        if type_.root in _BITS:
            return _whole(1 << (_BITS[type_.root] - 1))
        if type_.root in (t.TypeRoot.FLOAT, t.TypeRoot.DOUBLE):
            return lambda value: value if type(value) is float else float(_scalar(value))
        if type_.root in (t.TypeRoot.CHAR, t.TypeRoot.VARCHAR):
            return lambda value: value if type(value) is str else _TEXTS.encode(value).decode()
        if type_.root is t.TypeRoot.BOOLEAN:
            return lambda value: value if isinstance(value, bool) else _boolean(_expect(value, str))
        if type_.root in (t.TypeRoot.BINARY, t.TypeRoot.VARBINARY):
            return _base64
        raise SqlError(f"column '{name}' is {type_.sql()}, which has no form in JSON and CSV; cast it first")

    def _map(self, key_type: LogicalType, value_type: LogicalType, name: str) -> FromField:
        key, item = self.nullable(key_type, f"{name} (key)"), self.nullable(value_type, f"{name}{{}}")
        return lambda value: {key(k): item(v) for k, v in _expect(value, dict).items()}


def has_decimals(type_: LogicalType) -> bool:
    """Python's float would round what a column of decimals must keep."""
    match type_:
        case t.RowType():
            return any(has_decimals(each.type) for each in type_.fields)
        case t.ArrayType():
            return has_decimals(type_.element)
        case t.MapType():
            return has_decimals(type_.value)
    return isinstance(type_, t.DecimalType)


def _expect(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"expected {_CALLED[kind]}")
    return value


def _scalar(value: Any) -> Any:
    """A number, or a text that may be one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise ValueError
    if isinstance(value, str) and "_" in value:
        raise ValueError  # Python's own spelling of numbers
    return value


def _whole(limit: int) -> FromField:
    def convert(value: Any) -> int:
        if type(value) is not int:
            found = _scalar(value)
            value = int(found)
            if not isinstance(found, str) and value != found:
                raise ValueError("it has a fraction")
        if not -limit <= value < limit:
            raise ValueError("it is out of range")
        return int(value)

    return convert


def _decimal(type_: t.DecimalType) -> FromField:
    def convert(value: Any) -> Decimal:
        try:
            number = value if isinstance(value, Decimal) else Decimal(str(_scalar(value)).strip())
        except InvalidOperation:
            raise ValueError from None
        if not number.is_finite():
            raise ValueError
        found = fit_decimal(number, type_.precision, type_.scale)
        if found is None:
            raise ValueError("it has too many digits")
        return found

    return convert


def _timestamp(type_: t.TimestampType | t.LocalZonedTimestampType) -> FromField:
    """SQL's text and that of ISO-8601. Of a local timestamp it is in UTC if it names no other offset."""
    zoned = isinstance(type_, t.LocalZonedTimestampType)
    unit = 10 ** max(0, 6 - type_.precision)

    def convert(value: Any) -> datetime.datetime:
        text = _expect(value, str)
        try:
            if len(text) < 19 or text[4] != "-":
                raise ValueError
            found = datetime.datetime.fromisoformat(text)
        except ValueError:
            micros = read_timestamp_us(text.replace("T", " ").removesuffix("Z"), type_.precision)
            found = _START + datetime.timedelta(microseconds=micros)
        if found.tzinfo is not None:
            if not zoned and found.utcoffset():
                raise ValueError("it has an offset")
            found = found.astimezone(datetime.UTC).replace(tzinfo=None)
        if found.microsecond % unit:
            found = found.replace(microsecond=found.microsecond // unit * unit)
        return found.replace(tzinfo=datetime.UTC) if zoned else found

    return convert


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError
    return word == "true"


def _base64(value: Any) -> bytes:
    try:
        return base64.b64decode(_expect(value, str), validate=True)
    except binascii.Error:
        raise ValueError("expected base64") from None


# -- Writing


def written(value: Any, type_: LogicalType, iso: bool) -> Any:
    """A value for a format: times as text."""
    if value is None:
        return None
    match type_:
        case t.TimestampType() | t.LocalZonedTimestampType():
            text = sql_text(value, type_)
            text = text.replace(" ", "T") if iso else text
            return f"{text}Z" if isinstance(type_, t.LocalZonedTimestampType) else text
        case t.DateType() | t.TimeType():
            return sql_text(value, type_)
        case t.RowType():
            row = Row(*(written(item, each.type, iso) for item, each in zip(value, type_.fields, strict=True)))
            row.set_field_names([each.name for each in type_.fields])
            return row
        case t.ArrayType():
            return [written(each, type_.element, iso) for each in value]
        case t.MapType():
            return {written(k, type_.key, iso): written(v, type_.value, iso) for k, v in value.items()}
    return value


def plain(type_: LogicalType) -> Callable[[Any], Any] | None:
    """What makes of a value one that JSON and CSV can hold: bytes as base64, FLOAT without digits that it has not, NaN
    and infinities by Java's names. None: values stay what they are."""
    match type_:
        case t.FloatType():
            return lambda value: float(str(np.float32(value))) if math.isfinite(value) else _not_finite(value)
        case t.DoubleType():
            return lambda value: value if math.isfinite(value) else _not_finite(value)
        case t.BinaryType() | t.VarBinaryType():
            return lambda value: base64.b64encode(value).decode()
        case t.RowType():
            names = [each.name for each in type_.fields]
            fields = [plain(each.type) for each in type_.fields]
            if any(fields):
                return lambda value: named_row([_plain(*each) for each in zip(value, fields, strict=True)], names)
        case t.ArrayType():
            element = plain(type_.element)
            if element is not None:
                return lambda value: [_plain(each, element) for each in value]
        case t.MapType():
            item = plain(type_.value)
            if item is not None:
                return lambda value: {key: _plain(each, item) for key, each in value.items()}
    return None


def _plain(value: Any, convert: Callable[[Any], Any] | None) -> Any:
    return value if value is None or convert is None else convert(value)


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
