"""Rows as PostgreSQL's COPY reads them (text format), made column by column. Pure.

https://www.postgresql.org/docs/current/sql-copy.html: fields end with a tab, rows with a line feed, \\N is NULL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from headwater.common.errors import SerializationError, short_repr
from headwater.datastream.connectors.jdbc.values import Values

COPY_TEXT: Final = "copy"
"""The form of spooled output that is this text."""
_NULL: Final = "\\N"
_SPECIAL: Final = re.compile(r"[\\\t\n\r\0]")
_ESCAPED: Final = re.compile(r"\\(.)")
_UNESCAPES: Final = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r"}
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def copy_text(rows: Sequence[Values], width: int) -> bytes:
    """Return the rows as one block. Raises SerializationError for a value that PostgreSQL has no text for."""
    columns = [_column(column) for column in zip(*rows, strict=True)]
    try:
        if width == 1:
            return ("\n".join(columns[0]) + "\n").encode()
        return ("\n".join(map("\t".join, zip(*columns, strict=True))) + "\n").encode()
    except UnicodeEncodeError as error:
        bad = next(row for row in rows if any(isinstance(value, str) and not _encodes(value) for value in row))
        raise SerializationError(f"a text cannot be written as UTF-8: {error}; row: {short_repr(bad)}") from None


def rows_of(block: bytes) -> list[tuple[str | None, ...]]:
    """Return the rows of a block, their values as texts."""
    return [tuple(map(_value, line.split("\t"))) for line in block.decode().removesuffix("\n").split("\n")]


def _value(field: str) -> str | None:
    if "\\" not in field:
        return field
    return None if field == _NULL else _ESCAPED.sub(lambda match: _UNESCAPES[match[1]], field)


def _column(column: Sequence[Any]) -> Sequence[str]:
    types = set(map(type, column))
    if types == {int} or types == {float} or types == {Decimal}:
        return list(map(str, column))
    if types == {str}:
        return column if _SPECIAL.search("".join(column)) is None else list(map(_text, column))
    return [_NULL if value is None else _TEXTS.get(type(value), _other)(value) for value in column]


def _text(value: str) -> str:
    if "\0" in value:
        raise SerializationError(f"PostgreSQL's texts cannot have the character 0: {short_repr(value)}")
    return value.translate(_ESCAPES)


def _encodes(value: str) -> bool:
    try:
        value.encode()
        return True
    except UnicodeEncodeError:
        return False


def _array(values: Sequence[Any]) -> str:
    """An array's text, as a field of COPY."""
    return _text(array_literal(values))


def array_literal(values: Sequence[Any]) -> str:
    parts = []
    for value in values:
        if value is None:
            parts.append("NULL")
        elif isinstance(value, (list, tuple)):
            parts.append(array_literal(value))
        else:
            text = value if isinstance(value, str) else _TEXTS.get(type(value), str)(value).replace("\\\\", "\\")
            parts.append('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"')
    return "{" + ",".join(parts) + "}"


def _other(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return _array(value)
    return _text(str(value))


_TEXTS: Final[dict[type, Callable[[Any], str]]] = {
    str: _text,
    int: str,
    float: str,
    Decimal: str,
    bool: lambda value: "t" if value else "f",
    bytes: lambda value: "\\\\x" + value.hex(),
    bytearray: lambda value: "\\\\x" + value.hex(),
    datetime: lambda value: value.isoformat(" "),
    date: date.isoformat,
    time: time.isoformat,
    list: _array,
    tuple: _array,
}
