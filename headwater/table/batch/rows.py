"""Rows of a result as people see them: Python values, the text of the print connector, a table of characters."""

from __future__ import annotations

import datetime
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from headwater.common.types import Row
from headwater.table.functions.casting.to_text import write_floating
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType, RowType

MAX_COLUMN_WIDTH = 30

_WIDTHS = {
    t.TypeRoot.BOOLEAN: 5,
    t.TypeRoot.TINYINT: 4,
    t.TypeRoot.SMALLINT: 6,
    t.TypeRoot.INTEGER: 11,
    t.TypeRoot.BIGINT: 20,
    t.TypeRoot.DATE: 10,
}


def to_python(value: Any, type_: LogicalType) -> Any:
    """A value as programs get it: rows are Rows, maps are dicts, local timestamps have no zone."""
    if value is None:
        return None
    match type_:
        case t.RowType():
            row = Row(*(to_python(value[each.name], each.type) for each in type_.fields))
            row.set_field_names([each.name for each in type_.fields])
            return row
        case t.ArrayType():
            return [to_python(each, type_.element) for each in value]
        case t.MapType():
            return {to_python(key, type_.key): to_python(each, type_.value) for key, each in value}
        case t.MultisetType():
            return {to_python(key, type_.element): each for key, each in value}
    return value


def python_rows(table: pa.Table, row_type: RowType) -> Iterator[Row]:
    """The rows of a result. Columns of one name do not get into each other's way."""
    names = [each.name for each in row_type.fields]
    types = [each.type for each in row_type.fields]
    for batch in table.to_batches():
        columns = [column.to_pylist() for column in batch.columns]
        for values in zip(*columns, strict=True):
            row = Row(*(to_python(value, type_) for value, type_ in zip(values, types, strict=True)))
            row.set_field_names(names)
            yield row


def sql_text(value: Any, type_: LogicalType) -> str:
    """A value as Flink prints it, but for a NULL that is the whole value: that is the caller's."""
    if value is None:
        return "NULL"
    match type_:
        case t.BooleanType():
            return "TRUE" if value else "FALSE"
        case t.TimestampType():
            return _timestamp(value, type_.precision)
        case t.LocalZonedTimestampType():
            return _timestamp(value, type_.precision)
        case t.TimeType():
            return str(value.isoformat("seconds" if type_.precision == 0 else "milliseconds"))
        case t.VarBinaryType() | t.BinaryType():
            return f"x'{value.hex()}'"
        case t.FloatType() | t.DoubleType():
            return write_floating(float(value), isinstance(type_, t.FloatType))
        case t.ArrayType():
            return "[" + ", ".join(sql_text(each, type_.element) for each in value) + "]"
        case t.MapType():
            pairs = value.items() if isinstance(value, dict) else value
            return "{" + ", ".join(f"{sql_text(k, type_.key)}={sql_text(v, type_.value)}" for k, v in pairs) + "}"
        case t.MultisetType():
            pairs = value.items() if isinstance(value, dict) else value
            return "{" + ", ".join(f"{sql_text(k, type_.element)}={v}" for k, v in pairs) + "}"
        case t.RowType():
            fields = (sql_text(value[place], each.type) for place, each in enumerate(type_.fields))
            return "(" + ", ".join(fields) + ")"
    return str(value)


def _timestamp(value: datetime.datetime, precision: int) -> str:
    text = value.strftime("%Y-%m-%d %H:%M:%S")
    return f"{text}.{value.microsecond:06}000"[: len(text) + 1 + precision] if precision else text


def changelog_text(table: pa.Table, row_type: RowType) -> Iterator[str]:
    """`+I[1, ann]` for each row."""
    for row in python_rows(table, row_type):
        yield java_text(row, row_type)


def java_text(value: Any, type_: LogicalType) -> str:
    """A value as Java's objects print themselves, which is what Flink's print connector shows."""
    if value is None:
        return "null"
    match type_:
        case t.BooleanType():
            return "true" if value else "false"
        case t.TimestampType() | t.LocalZonedTimestampType():
            zone = "Z" if isinstance(type_, t.LocalZonedTimestampType) else ""
            return f"{value.date().isoformat()}T{_java_time(value.time())}{zone}"
        case t.TimeType():
            return _java_time(value)
        case t.VarBinaryType() | t.BinaryType():
            return str([byte - 256 if byte > 127 else byte for byte in value])
        case t.ArrayType():
            return "[" + ", ".join(java_text(each, type_.element) for each in value) + "]"
        case t.MapType():
            pairs = (f"{java_text(key, type_.key)}={java_text(each, type_.value)}" for key, each in value.items())
            return "{" + ", ".join(pairs) + "}"
        case t.RowType():
            fields = (java_text(value[place], each.type) for place, each in enumerate(type_.fields))
            return f"+I[{', '.join(fields)}]"
    return sql_text(value, type_)


def _java_time(value: datetime.time) -> str:
    """Seconds only if there are any, and three or six digits of them."""
    if value.microsecond:
        return value.isoformat("microseconds" if value.microsecond % 1000 else "milliseconds")
    return value.isoformat("seconds" if value.second else "minutes")


def _shown(value: Any, type_: LogicalType, null: str) -> str:
    return null if value is None else sql_text(value, type_)


# -- Tables of characters

NULL = "<NULL>"


def texts_of(rows: Iterable[Row], row_type: RowType, null: str = NULL) -> list[list[str]]:
    """The values of rows as a table of characters shows them."""
    return [[_shown(row[place], each.type, null) for place, each in enumerate(row_type.fields)] for row in rows]


def tableau(rows: Iterable[Row], row_type: RowType) -> Iterator[str]:
    """The lines of a table of characters, with columns as wide as their types need."""
    texts = texts_of(rows, row_type)
    widths = [max(_display_width(each.name), _width(each.type), len(NULL)) for each in row_type.fields]
    if not texts:
        yield "Empty set"
        return
    yield from boxed([each.name for each in row_type.fields], texts, widths)
    yield f"{len(texts)} {'row' if len(texts) == 1 else 'rows'} in set"


def changelog_tableau(rows: Iterable[Row], row_type: RowType) -> Iterator[str]:
    """The lines of a changelog, each as soon as its row is there: the kind of change first."""
    widths = [2, *(max(_display_width(each.name), _width(each.type), len(NULL)) for each in row_type.fields)]
    line = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    count = 0
    for row in rows:
        if not count:
            yield from (line, _line(["op", *(each.name for each in row_type.fields)], widths), line)
        count += 1
        yield _line([str(row.get_row_kind()), *texts_of([row], row_type)[0]], widths)
    if not count:
        yield "Empty set"
        return
    yield line
    yield f"{count} {'row' if count == 1 else 'rows'} in set"


def boxed(names: Sequence[str], texts: Sequence[Sequence[str]], widths: Sequence[int] | None = None) -> Iterator[str]:
    """The table itself. Without widths, columns are as wide as what is in them."""
    if widths is None:
        columns = [[name, *(row[at] for row in texts)] for at, name in enumerate(names)]
        widths = [max(_display_width(text) for text in column) for column in columns]
    line = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    yield line
    yield _line(names, widths)
    yield line
    for row in texts:
        yield _line(row, widths)
    yield line


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    return "|" + "|".join(f" {_fit(text, width)} " for text, width in zip(texts, widths, strict=True)) + "|"


def _fit(text: str, width: int) -> str:
    if _display_width(text) <= width:
        return " " * (width - _display_width(text)) + text
    kept = ""
    for character in text:
        if _display_width(kept + character) > width - 3:
            break
        kept += character
    return " " * (width - _display_width(kept) - 3) + kept + "..."


def _display_width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _width(type_: LogicalType) -> int:
    if type_.root in _WIDTHS:
        return _WIDTHS[type_.root]
    match type_:
        case t.DecimalType():
            return type_.precision + 2
        case t.TimestampType() | t.LocalZonedTimestampType():
            return 19 + (type_.precision + 1 if type_.precision else 0)
        case t.TimeType():
            return 8 + (type_.precision + 1 if type_.precision else 0)
    return MAX_COLUMN_WIDTH
