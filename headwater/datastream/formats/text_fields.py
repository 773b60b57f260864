"""One field of text as a value of a declared type, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from headwater.common.errors import ConfigurationError
from headwater.common.type_system.information import (
    ARRAYS,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TypeInformation,
)
from headwater.common.types import Row

FromText = Callable[[str], Any]
"""Raises ValueError for text that is not of the type."""
ToText = Callable[[Any], str]

_WHOLE_BITS: Final = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_BASIC: Final[dict[BasicType, FromText]] = {
    BasicType.STRING: str,
    BasicType.CHAR: str,
    BasicType.BIG_INT: int,
    BasicType.FLOAT: float,
    BasicType.DOUBLE: float,
}
WHOLE_NUMBERS: Final = frozenset({*_WHOLE_BITS, BasicType.BIG_INT})
NUMBERS: Final = frozenset(
    {*WHOLE_NUMBERS, BasicType.FLOAT, BasicType.DOUBLE, BasicType.BIG_DEC},
)


def fields_of(value: Any, names: list[str]) -> Sequence[Any]:
    """Return the fields `names` of a Row or a dict. A tuple must have just these, in this order."""
    if isinstance(value, Row):
        return value.get_fields_by_names(names)
    return [value[name] for name in names] if isinstance(value, dict) else value


def is_text_type(type_info: object) -> bool:
    """Return True if a value of the type is one piece of text."""
    if isinstance(type_info, BasicTypeInfo):
        return type_info.basic_type is not BasicType.INSTANT
    return isinstance(type_info, DateTypeInfo | TimeTypeInfo | TimestampTypeInfo)


def from_text(type_info: TypeInformation, array_separator: str = ";") -> FromText:
    """Return what makes a value of text; arrays are cut at `array_separator`."""
    if isinstance(type_info, ARRAYS) and is_text_type(type_info.element_type):
        element = from_text(type_info.element_type)
        if not array_separator:
            return lambda text: [element(text)] if text else []
        return lambda text: [element(part) for part in text.split(array_separator)] if text else []
    if isinstance(type_info, DateTypeInfo):
        return date.fromisoformat
    if isinstance(type_info, TimeTypeInfo):
        return time.fromisoformat
    if isinstance(type_info, TimestampTypeInfo):
        return datetime.fromisoformat
    if isinstance(type_info, BasicTypeInfo):
        kind = type_info.basic_type
        if kind in _WHOLE_BITS:
            return _whole_number(_WHOLE_BITS[kind])
        if kind is BasicType.BOOLEAN:
            return _boolean
        if kind is BasicType.BIG_DEC:
            return _decimal
        if kind in _BASIC:
            return _BASIC[kind]
    raise ConfigurationError(
        f"{type_info!r} has no form as a field of text; expected a basic type, a date or time, or an array of these"
    )


def to_text(type_info: TypeInformation, array_separator: str = ";") -> ToText:
    """Return what makes text of a value that is not None."""
    from_text(type_info, array_separator)  # the same types have both directions
    if isinstance(type_info, ARRAYS):
        element = to_text(type_info.element_type)
        return lambda values: array_separator.join(map(element, values))
    if isinstance(type_info, DateTypeInfo | TimeTypeInfo):
        return lambda value: str(value.isoformat())
    if isinstance(type_info, BasicTypeInfo) and type_info.basic_type is BasicType.BOOLEAN:
        return lambda value: "true" if value else "false"
    return str


def _whole_number(bits: int) -> FromText:
    limit = 1 << (bits - 1)

    def convert(text: str) -> int:
        number = int(text)
        if not -limit <= number < limit:
            raise ValueError(f"{number} does not fit into {bits} bits")
        return number

    return convert


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return word == "true"


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text.strip())
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a decimal number") from None
