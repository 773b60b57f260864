"""The fast path of type checking: column by column, with a few C calls per column.

A column function takes a list of values and returns it, or a new list with the usual conversions done, or raises
`UnusualColumn`: then the caller must check value by value. It never says what is wrong.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from itertools import chain
from typing import Any, TypeAlias

from headwater.common.time import Instant
from headwater.common.type_system.information import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from headwater.common.types import Row, named_row

Column: TypeAlias = Callable[[list[Any]], list[Any]]

INT_RANGES: dict[BasicType, tuple[int, int] | None] = {
    BasicType.BYTE: (-(2**7), 2**7 - 1),
    BasicType.SHORT: (-(2**15), 2**15 - 1),
    BasicType.INT: (-(2**31), 2**31 - 1),
    BasicType.LONG: (-(2**63), 2**63 - 1),
    BasicType.BIG_INT: None,
}

_NONE = type(None)
_EXACT: dict[BasicType, type] = {
    BasicType.STRING: str,
    BasicType.BOOLEAN: bool,
    BasicType.BIG_DEC: decimal.Decimal,
    BasicType.INSTANT: Instant,
}


class UnusualColumn(Exception):
    """The column holds a wrong value, or a rare one."""


def compile_column(type_info: TypeInformation, *, nullable: bool) -> Column:
    """The column function of a type. `nullable` allows None among the values; for composite types that is unusual."""
    if isinstance(type_info, PickledBytesTypeInfo):
        return _accept_any
    if isinstance(type_info, ExternalTypeInfo):
        return compile_column(type_info.wrapped, nullable=nullable)
    if isinstance(type_info, BasicTypeInfo):
        basic = type_info.basic_type
        if basic in INT_RANGES:
            return _ints(INT_RANGES[basic], nullable)
        if basic in (BasicType.FLOAT, BasicType.DOUBLE):
            return _floats(nullable)
        if basic in _EXACT:
            return _exact(_EXACT[basic], nullable)
    if isinstance(type_info, DateTypeInfo):
        return _exact(datetime.date, nullable)
    if isinstance(type_info, TimeTypeInfo):
        return _exact(datetime.time, nullable)
    if isinstance(type_info, TimestampTypeInfo):
        return _exact(datetime.datetime, nullable)
    if isinstance(type_info, TupleTypeInfo):
        return _tuples(type_info)
    if isinstance(type_info, RowTypeInfo):
        return _rows(type_info)
    if isinstance(type_info, (ListTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo)):
        return _lists(type_info.element_type)
    if isinstance(type_info, MapTypeInfo):
        return _maps(type_info)
    return _unusual


def _accept_any(column: list[Any]) -> list[Any]:
    return column


def _unusual(column: list[Any]) -> list[Any]:
    raise UnusualColumn


def _exact(exact: type, nullable: bool) -> Column:
    allowed = {exact, _NONE} if nullable else {exact}

    def check(column: list[Any]) -> list[Any]:
        if set(map(type, column)) <= allowed:
            return column
        raise UnusualColumn

    return check


def _ints(bounds: tuple[int, int] | None, nullable: bool) -> Column:
    only_ints = {int}
    with_nones = {int, _NONE}

    def check(column: list[Any]) -> list[Any]:
        types = set(map(type, column))
        numbers = column
        if types != only_ints:
            if not nullable or not types <= with_nones:
                raise UnusualColumn
            numbers = [number for number in column if number is not None]
        if bounds is not None and numbers and (min(numbers) < bounds[0] or max(numbers) > bounds[1]):
            raise UnusualColumn
        return column

    return check


def _floats(nullable: bool) -> Column:
    only_floats = {float, _NONE} if nullable else {float}
    with_ints = only_floats | {int}

    def check(column: list[Any]) -> list[Any]:
        types = set(map(type, column))
        if types <= only_floats:
            return column
        if not types <= with_ints:
            raise UnusualColumn
        try:
            return [float(number) if type(number) is int else number for number in column]
        except OverflowError:
            raise UnusualColumn from None

    return check


def _tuples(type_info: TupleTypeInfo) -> Column:
    fields = [compile_column(field, nullable=False) for field in type_info.get_field_types()]
    size = {len(fields)}

    def check(column: list[Any]) -> list[Any]:
        if set(map(type, column)) != {tuple} or set(map(len, column)) != size:
            raise UnusualColumn
        changed = _changed_fields(column, fields)
        return column if changed is None else list(zip(*changed, strict=True))

    return check


def _rows(type_info: RowTypeInfo) -> Column:
    fields = [compile_column(field, nullable=True) for field in type_info.get_field_types()]
    size = {len(fields)}
    names = type_info.get_field_names()

    def check(column: list[Any]) -> list[Any]:
        types = set(map(type, column))
        if types == {Row}:
            values = [row._values for row in column]
        elif types == {tuple}:
            values = column
        else:
            raise UnusualColumn
        if set(map(len, values)) != size:
            raise UnusualColumn
        if values is not column:
            given = [row._fields for row in column]
            # Names as declared (f0, f1, ... where none were), or none at all; count() compares in C, identity first.
            fits = given.count(names) == len(given)
            if not fits and given.count(None) != len(given):
                raise UnusualColumn
            changed = _changed_fields(values, fields)
            if changed is None and fits:
                return column
            kinds = [row._row_kind for row in column]
            rebuilt = values if changed is None else list(zip(*changed, strict=True))
            return [named_row(list(row_values), names, kind) for row_values, kind in zip(rebuilt, kinds, strict=True)]
        changed = _changed_fields(values, fields)
        rebuilt = values if changed is None else list(zip(*changed, strict=True))
        return [named_row(list(row_values), names) for row_values in rebuilt]

    return check


def _lists(element: TypeInformation) -> Column:
    check_elements = compile_column(element, nullable=True)

    def check(column: list[Any]) -> list[Any]:
        if set(map(type, column)) != {list}:
            raise UnusualColumn
        elements = list(chain.from_iterable(column))
        checked = check_elements(elements)
        if checked is elements:
            return column
        remaining = iter(checked)
        return [[next(remaining) for _ in items] for items in column]

    return check


def _maps(type_info: MapTypeInfo) -> Column:
    check_keys = compile_column(type_info.key_type, nullable=False)
    check_values = compile_column(type_info.value_type, nullable=True)

    def check(column: list[Any]) -> list[Any]:
        if set(map(type, column)) != {dict}:
            raise UnusualColumn
        keys = list(chain.from_iterable(column))
        if not keys:
            return column
        values = list(chain.from_iterable(entries.values() for entries in column))
        if check_keys(keys) is not keys or check_values(values) is not values:
            raise UnusualColumn
        return column

    return check


def _changed_fields(records: list[Any], fields: list[Column]) -> list[list[Any]] | None:
    """The columns of `records` after their checks, or None if no check changed anything."""
    columns = [list(column) for column in zip(*records, strict=True)]
    checked = [check(column) for check, column in zip(fields, columns, strict=True)]
    if all(after is before for after, before in zip(checked, columns, strict=True)):
        return None
    return checked
