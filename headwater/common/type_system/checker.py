"""Checks values against their declared types.

Two paths, one set of rules. `compile_batch_checker` checks a batch column by column (`columns.py`), with a few C calls
per field. If a column is unusual, it checks value by value with the checkers made here, which convert what is close
enough and say exactly what does not fit.

None is allowed where Flink allows null: in fields of rows, in lists, in values of maps; not as a whole record, in a
tuple, in a primitive array or as a map's key.
"""

from __future__ import annotations

import datetime
import decimal
import numbers
from array import array
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from headwater.common.errors import TypeMismatchError, short_repr
from headwater.common.time import Instant
from headwater.common.type_system.columns import INT_RANGES, UnusualColumn, compile_column
from headwater.common.type_system.information import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    LocalTimeTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from headwater.common.types import Row

Checker: TypeAlias = Callable[[Any], Any]
BatchChecker: TypeAlias = Callable[[list[Any]], list[Any]]


def compile_checker(type_info: TypeInformation, what: str = "record") -> Checker:
    """Return a function that returns its argument, converted if the type asks for it, or raises TypeMismatchError.

    `what` is how the error calls the argument.

    Conversions: tuple, list, dict and plain objects to a ROW; list and Row to a TUPLE; tuples and arrays to a LIST;
    int to DOUBLE, FLOAT and BIG_DEC; NumPy scalars to Python's. Arguments are never changed in place.
    """
    check = _compile(type_info)

    def check_value(value: Any) -> Any:
        try:
            return check(value)
        except _Mismatch as mismatch:
            raise mismatch.as_error(value, what) from None

    return check_value


def compile_batch_checker(type_info: TypeInformation) -> BatchChecker:
    """As `compile_checker`, for lists: returns the list itself if no value was converted, else a new one."""
    if isinstance(type_info, PickledBytesTypeInfo):
        return _accept_any
    check_value = compile_checker(type_info)
    check_column = compile_column(type_info, nullable=False)

    def check_batch(values: list[Any]) -> list[Any]:
        if not values:
            return values
        try:
            return check_column(values)
        except UnusualColumn:
            return [check_value(value) for value in values]

    return check_batch


class _Mismatch(Exception):
    """A value does not fit. Each container on the way up adds its place."""

    def __init__(self, expected: str, found: Any, hint: str = "") -> None:
        super().__init__(expected)
        self.path: list[str] = []
        text = "None" if found is None else f"{type(found).__name__} {short_repr(found, 100)}"
        self.detail = f"expected {expected}, found {text}" + (f"; {hint}" if hint else "")

    def inside(self, where: str) -> _Mismatch:
        self.path.insert(0, where)
        return self

    def as_error(self, value: Any, what: str) -> TypeMismatchError:
        if not self.path:
            return TypeMismatchError(self.detail)
        return TypeMismatchError(f"{', '.join(self.path)}: {self.detail}, in {what} {short_repr(value)}")


def _accept_any(value: Any) -> Any:
    return value


def _compile(type_info: TypeInformation) -> Checker:
    if isinstance(type_info, PickledBytesTypeInfo):
        return _accept_any
    if isinstance(type_info, ExternalTypeInfo):
        return _compile(type_info.wrapped)
    if isinstance(type_info, BasicTypeInfo):
        return _basic(type_info.basic_type)
    if isinstance(type_info, (DateTypeInfo, TimeTypeInfo, TimestampTypeInfo, LocalTimeTypeInfo)):
        return _time(type_info)
    if isinstance(type_info, TupleTypeInfo):
        return _tuple(type_info)
    if isinstance(type_info, RowTypeInfo):
        return _row(type_info)
    if isinstance(type_info, MapTypeInfo):
        return _map(type_info)
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        return _primitive_array(type_info)
    if isinstance(type_info, (ListTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo)):
        return _list(type_info.element_type, _name(type_info), nullable=True)
    raise TypeMismatchError(f"{type_info!r} is not a type that headwater can check; use one made by Types")


def _basic(basic: BasicType) -> Checker:
    if basic in INT_RANGES:
        return _int(basic)
    if basic in (BasicType.FLOAT, BasicType.DOUBLE):
        return _float(basic)
    if basic is BasicType.BIG_DEC:
        return _decimal
    if basic is BasicType.CHAR:
        return _char
    exact: type = {BasicType.STRING: str, BasicType.BOOLEAN: bool, BasicType.INSTANT: Instant}[basic]

    def check(value: Any) -> Any:
        if isinstance(value, exact):
            return value
        plain = _from_numpy(value)
        if isinstance(plain, exact):
            return plain
        raise _Mismatch(basic.name, value)

    return check


def _int(basic: BasicType) -> Checker:
    bounds = INT_RANGES[basic]

    def check(value: Any) -> Any:
        plain = value if isinstance(value, int) else _from_numpy(value)
        if isinstance(plain, bool) or not isinstance(plain, int):
            raise _Mismatch(basic.name, value)
        if bounds is not None and not bounds[0] <= plain <= bounds[1]:
            raise _Mismatch(f"{basic.name} ({bounds[0]} to {bounds[1]})", value)
        return plain

    return check


def _float(basic: BasicType) -> Checker:
    def check(value: Any) -> Any:
        if isinstance(value, float):
            return value
        if type(value) is not bool and isinstance(value, numbers.Real):
            try:
                return float(value)
            except OverflowError:
                raise _Mismatch(basic.name, value, "the number is too large for a float") from None
        raise _Mismatch(basic.name, value)

    return check


def _decimal(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return decimal.Decimal(value)
    hint = "make it with Decimal(str(x)), because a float is not exact" if isinstance(value, float) else ""
    raise _Mismatch("BIG_DEC", value, hint)


def _char(value: Any) -> Any:
    if isinstance(value, str) and len(value) == 1:
        return value
    raise _Mismatch("CHAR (one character)", value)


def _time(type_info: TypeInformation) -> Checker:
    kind = type_info.time_type.name if isinstance(type_info, LocalTimeTypeInfo) else ""
    name = kind or _name(type_info)
    exact: type
    if isinstance(type_info, DateTypeInfo) or kind == "LOCAL_DATE":
        exact = datetime.date
    elif isinstance(type_info, TimeTypeInfo) or kind == "LOCAL_TIME":
        exact = datetime.time
    else:
        exact = datetime.datetime

    def check(value: Any) -> Any:
        if not isinstance(value, exact):
            raise _Mismatch(name, value)
        if exact is datetime.date and isinstance(value, datetime.datetime):
            raise _Mismatch(name, value, "call .date() on it")
        return value

    return check


def _tuple(type_info: TupleTypeInfo) -> Checker:
    checks = [_compile(field) for field in type_info.get_field_types()]
    size = len(checks)

    def check(value: Any) -> Any:
        if not isinstance(value, (tuple, list, Row)):
            raise _Mismatch(f"TUPLE of {size} fields", value)
        if len(value) != size:
            raise _Mismatch(f"TUPLE of {size} fields", value, f"it has {len(value)}")
        fields = []
        for index, field in enumerate(value):
            try:
                fields.append(checks[index](field))
            except _Mismatch as mismatch:
                raise mismatch.inside(f"field {index}") from None
        if isinstance(value, tuple) and all(map(_same, fields, value)):
            return value  # also a NamedTuple stays what it is
        return tuple(fields)

    return check


def _row(type_info: RowTypeInfo) -> Checker:
    checks = [_nullable(_compile(field)) for field in type_info.get_field_types()]
    names = type_info.get_field_names()
    named = type_info.has_names
    expected = f"ROW of {len(names)} fields" + (f" ({', '.join(names)})" if named else "")

    def check(value: Any) -> Any:
        given = _row_values(value, names, named, expected)
        if len(given) != len(names):
            raise _Mismatch(expected, value, f"it has {len(given)}")
        fields = []
        for index, field in enumerate(given):
            try:
                fields.append(checks[index](field))
            except _Mismatch as mismatch:
                label = f"field {index} ({names[index]!r})" if named else f"field {index}"
                raise mismatch.inside(label) from None
        if isinstance(value, Row):
            if value._fields == names and all(map(_same, fields, value._values)):
                return value
            row = Row.of_kind(value.get_row_kind(), *fields)
        else:
            row = Row(*fields)
        row._fields = names  # f0, f1, ... where the type has none, as in PyFlink
        return row

    return check


def _row_values(value: Any, names: list[str], named: bool, expected: str) -> list[Any]:
    """Return the field values of anything that may stand for a row, in the order of `names`."""
    if isinstance(value, Row):
        if named and value._fields is not None and value._fields != names:
            if sorted(value._fields) != sorted(names):
                raise _Mismatch(expected, value)
            return value.get_fields_by_names(names)
        return value._values
    if isinstance(value, (tuple, list)):
        return list(value)
    if isinstance(value, Mapping):
        return [value.get(name) for name in names]
    attributes = getattr(value, "__dict__", None)
    if attributes and named and not isinstance(value, type):
        return [attributes.get(name) for name in names]
    raise _Mismatch(expected, value)


def _list(element: TypeInformation, name: str, nullable: bool) -> Checker:
    check_element = _nullable(_compile(element)) if nullable else _compile(element)

    def check(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            items = value
        elif isinstance(value, array) or _is_numpy(value):
            items = value.tolist()
        else:
            raise _Mismatch(name, value)
        if not isinstance(items, (list, tuple)):
            raise _Mismatch(name, value)
        checked = []
        for index, item in enumerate(items):
            try:
                checked.append(check_element(item))
            except _Mismatch as mismatch:
                raise mismatch.inside(f"element {index}") from None
        if isinstance(value, list) and all(map(_same, checked, value)):
            return value
        return checked

    return check


def _primitive_array(type_info: PrimitiveArrayTypeInfo) -> Checker:
    check_list = _list(type_info.element_type, _name(type_info), nullable=False)
    if type_info.element_type != BasicTypeInfo(BasicType.BYTE):
        return check_list

    def check(value: Any) -> Any:
        return value if isinstance(value, (bytes, bytearray)) else check_list(value)

    return check


def _map(type_info: MapTypeInfo) -> Checker:
    check_key = _compile(type_info.key_type)
    check_entry = _nullable(_compile(type_info.value_type))

    def check(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _Mismatch("MAP", value)
        checked = {}
        same = isinstance(value, dict)
        for key, entry in value.items():
            try:
                new_key = check_key(key)
            except _Mismatch as mismatch:
                raise mismatch.inside(f"key {short_repr(key, 100)}") from None
            try:
                new_entry = check_entry(entry)
            except _Mismatch as mismatch:
                raise mismatch.inside(f"value of key {short_repr(key, 100)}") from None
            same = same and new_key is key and new_entry is entry
            checked[new_key] = new_entry
        return value if same else checked

    return check


def _nullable(check: Checker) -> Checker:
    return lambda value: None if value is None else check(value)


def _same(left: Any, right: Any) -> bool:
    return left is right


def _is_numpy(value: Any) -> bool:
    return type(value).__module__ == "numpy"


def _from_numpy(value: Any) -> Any:
    """Return a NumPy scalar as Python's, anything else unchanged. Does not import NumPy."""
    return value.item() if _is_numpy(value) and getattr(value, "ndim", None) == 0 else value


def _name(type_info: TypeInformation) -> str:
    """The name under which `Types` offers a type."""
    return {
        DateTypeInfo: "SQL_DATE",
        TimeTypeInfo: "SQL_TIME",
        TimestampTypeInfo: "SQL_TIMESTAMP",
        ListTypeInfo: "LIST",
        BasicArrayTypeInfo: "BASIC_ARRAY",
        ObjectArrayTypeInfo: "OBJECT_ARRAY",
        PrimitiveArrayTypeInfo: "PRIMITIVE_ARRAY",
    }.get(type(type_info), repr(type_info))
