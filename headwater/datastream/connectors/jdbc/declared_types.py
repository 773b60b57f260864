"""Which declared types go into which columns: what would fail at the commit is refused when the job starts. Pure."""

from __future__ import annotations

from typing import Any, Final

from headwater.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    LocalTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)

_NUMBERS: Final = frozenset(("smallint", "integer", "bigint", "numeric", "real", "double precision", "oid", "money"))
_TEXTS: Final = frozenset(("text", "character varying", "character", "bpchar", '"char"', "name", "citext"))
_TIMES: Final = frozenset(
    ("date", "timestamp without time zone", "timestamp with time zone", "time without time zone", "time with time zone")
)
_WHOLE: Final = frozenset((BasicType.BYTE, BasicType.SHORT, BasicType.INT, BasicType.LONG, BasicType.BIG_INT))
_FRACTIONS: Final = frozenset((BasicType.FLOAT, BasicType.DOUBLE, BasicType.BIG_DEC))
KNOWN: Final = _NUMBERS | _TEXTS | _TIMES | {"boolean"}
"""Columns of other types take what their input functions take."""


def family_of(type_info: Any) -> str | None:
    """ "number", "text", "boolean" or "time"; None for a type that is not judged."""
    if isinstance(type_info, BasicTypeInfo):
        basic = type_info.basic_type
        if basic in _WHOLE or basic in _FRACTIONS:
            return "number"
        if basic in (BasicType.STRING, BasicType.CHAR):
            return "text"
        return {BasicType.BOOLEAN: "boolean", BasicType.INSTANT: "time"}.get(basic)
    if isinstance(type_info, (DateTypeInfo, TimeTypeInfo, TimestampTypeInfo, LocalTimeTypeInfo)):
        return "time"
    return None


def fits(family: str | None, column: str) -> bool:
    """Return True if values of the family can be values of such a column, by their type."""
    if family is None or column not in KNOWN:
        return True
    allowed = {"number": _NUMBERS, "text": _TEXTS, "boolean": frozenset(("boolean",)), "time": _TIMES}
    return column in allowed[family]
