"""Values of databases and values of SQL: what does not fit its declared type is an error, never something near it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headwater.common.errors import SqlError, short_repr
from headwater.common.typeinfo import TypeInformation, Types
from headwater.datastream.connectors.jdbc.expected import ExpectedColumn, ExpectedTable
from headwater.table.batch.rows import sql_text
from headwater.table.stream.connectors.contract import Field, TableContext
from headwater.table.types import logical as t
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType, TypeRoot
from headwater.table.types.type_information import to_type_information

POSTGRES = "postgres"
SQLITE = "sqlite"
SQLITE_DIGITS = 15

_FAMILIES = {
    **dict.fromkeys(t.INTEGER_ROOTS, "integer"),
    **dict.fromkeys(t.APPROXIMATE_ROOTS, "float"),
    **dict.fromkeys(t.STRING_ROOTS, "text"),
    **dict.fromkeys(t.BINARY_ROOTS, "bytea"),
    TypeRoot.DECIMAL: "numeric",
    TypeRoot.BOOLEAN: "boolean",
    TypeRoot.DATE: "date",
    TypeRoot.TIME: "time",
    TypeRoot.TIMESTAMP: "timestamp",
    TypeRoot.TIMESTAMP_LTZ: "timestamptz",
}
_PYTHON: dict[str, type] = {"integer": int, "float": float, "text": str, "bytea": bytes, "boolean": bool}
"""Values of these types are what they are."""


def expected_table(
    context: TableContext,
    table: str,
    fields: Sequence[Field],
    kind: str,
    *,
    arrays: bool = False,
    write: bool = False,
) -> ExpectedTable:
    """What the table must have in the database. Raises SqlError for types that no database here has."""
    columns = []
    for each in fields:
        plain = each.type.element if isinstance(each.type, t.ArrayType) and arrays else each.type
        if plain.root not in _FAMILIES:
            raise context.error(
                f"column '{each.name}': {each.type.sql()} is no type that the database has; declare a STRING"
            )
        if kind == SQLITE and isinstance(plain, t.DecimalType) and plain.precision > SQLITE_DIGITS:
            raise context.error(
                f"column '{each.name}': {plain.sql()}: SQLite keeps {SQLITE_DIGITS} digits; declare a STRING, or fewer"
            )
        family = "" if plain is not each.type else _FAMILIES[plain.root]
        if write and not family.startswith("timestamp"):
            family = ""  # the statement itself is checked, too
        columns.append(ExpectedColumn(each.name, each.type.sql(), family))
    return ExpectedTable(table, tuple(columns), context.schema.primary_key)


def column_from(values: list[Any], type_: LogicalType, kind: str, what: str) -> pa.Array:
    """Values that a driver gave, as a column. Raises SqlError."""
    family = _FAMILIES.get(type_.root, "")
    if set(map(type, values)) - {_PYTHON.get(family), type(None)}:
        fit = fitting(type_, kind)
        try:
            values = [None if value is None else fit(value) for value in values]
        except (ValueError, ArithmeticError) as error:
            raise SqlError(f"{what} is {type_.sql()}, and a value does not fit: {error}") from None
    try:
        return pa.array(values, to_arrow(type_))
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError) as error:
        raise SqlError(f"{what} is {type_.sql()}, and a value does not fit: {error}") from None


def fitting(type_: LogicalType, kind: str) -> Callable[[Any], Any]:
    """A function from a driver's value (not None) to the one that SQL has. It raises ValueError."""
    if isinstance(type_, t.ArrayType):
        inner = fitting(type_.element, kind)
        return lambda value: [None if each is None else inner(each) for each in _is(value, list)]
    return {
        "integer": _integer,
        "float": _float if kind == SQLITE else lambda value: _is(value, float),
        "text": lambda value: _is(value, str),
        "bytea": lambda value: bytes(_is(value, bytes, bytearray, memoryview)),
        "boolean": _boolean if kind != POSTGRES else lambda value: _is(value, bool),
        "numeric": lambda value: _decimal(value, type_, kind),
        "date": _date,
        "time": _time,
        "timestamp": _local,
        "timestamptz": lambda value: _instant(value, kind),
    }[_FAMILIES[type_.root]]


def _is(value: Any, *types: type) -> Any:
    if not isinstance(value, types):
        raise ValueError(f"{short_repr(value)} is {type(value).__name__}")
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise ValueError(f"{value} is bool")
    return int(_is(value, int))


def _float(value: Any) -> float:
    return float(_is(value, float, int))


def _boolean(value: Any) -> bool:
    if value not in (0, 1):
        raise ValueError(f"{short_repr(value)} is neither 0 nor 1")
    return bool(value)


def _decimal(value: Any, type_: LogicalType, kind: str) -> Decimal:
    assert isinstance(type_, t.DecimalType)
    found = Decimal(str(_is(value, Decimal, int, *((float, str) if kind == SQLITE else ()))))
    if not found.is_finite():
        raise ValueError(f"{found} is no number")
    digits = found.as_tuple().exponent
    if isinstance(digits, int) and -digits > type_.scale:
        rounded = round(found, type_.scale)
        if rounded != found:
            raise ValueError(f"{found} has more than {type_.scale} digits behind the point")
        return rounded
    return found


def _date(value: Any) -> datetime.date:
    if isinstance(value, str):
        return datetime.date.fromisoformat(value)
    if isinstance(value, datetime.datetime):
        raise ValueError(f"{value} is a timestamp")
    found: datetime.date = _is(value, datetime.date)
    return found


def _time(value: Any) -> datetime.time:
    if isinstance(value, datetime.timedelta):  # MySQL's
        if not datetime.timedelta() <= value < datetime.timedelta(days=1):
            raise ValueError(f"{value} is no time of a day")
        return (datetime.datetime.min + value).time()
    found = datetime.time.fromisoformat(value) if isinstance(value, str) else _is(value, datetime.time)
    if found.tzinfo is not None:
        raise ValueError(f"{found} has a time zone")
    return found


def _local(value: Any) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(value) if isinstance(value, str) else _is(value, datetime.datetime)
    if found.tzinfo is not None:
        raise ValueError(f"{found} has a time zone; declare TIMESTAMP_LTZ")
    return found


def _instant(value: Any, kind: str) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(value) if isinstance(value, str) else _is(value, datetime.datetime)
    if found.tzinfo is None:
        if kind == POSTGRES:
            raise ValueError(f"{found} has no time zone; declare TIMESTAMP")
        return found.replace(tzinfo=datetime.UTC)  # sessions are in UTC
    return found.astimezone(datetime.UTC)


# -- To databases


def stored_as_text(type_: LogicalType, kind: str) -> bool:
    """Whether the database has no such type, and gets its text."""
    return kind == SQLITE and (t.is_temporal(type_) or isinstance(type_, t.DecimalType))


def stored(value: Any, type_: LogicalType, kind: str) -> Any:
    """A value as the driver takes it."""
    if value is None or not stored_as_text(type_, kind):
        return value
    zone = "+00:00" if isinstance(type_, t.LocalZonedTimestampType) else ""
    return sql_text(value, type_) + zone


def stored_type(type_: LogicalType, kind: str) -> TypeInformation:
    if stored_as_text(type_, kind):
        return Types.STRING()
    # Values are datetimes; the time zone is checked with the columns.
    return Types.SQL_TIMESTAMP() if isinstance(type_, t.LocalZonedTimestampType) else to_type_information(type_)
