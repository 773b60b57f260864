"""The SQL types that annotations of Python mean."""

from __future__ import annotations

import datetime
import decimal
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

from headwater.common.errors import SqlError
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType, RowField, RowType

_TYPES: dict[Any, LogicalType] = {
    bool: t.BOOLEAN,
    int: t.BIGINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    decimal.Decimal: t.DecimalType(precision=38, scale=18),
    datetime.datetime: t.TimestampType(precision=6),
    datetime.date: t.DATE,
    datetime.time: t.TimeType(precision=0),
}


def returned(function: Callable[..., Any], name: str) -> Any:
    """The annotation of what a function returns."""
    try:
        hints = typing.get_type_hints(function)
    except Exception as error:
        raise SqlError(f"{name}: its annotations cannot be read ({error}); give result_type") from None
    if "return" not in hints:
        raise SqlError(f"{name} says not what it returns; give result_type, or annotate it: `def f(x) -> int`")
    return hints["return"]


def type_of(annotation: Any, name: str) -> LogicalType:
    """The type of values that an annotation describes. All are nullable."""
    if isinstance(annotation, LogicalType):
        return annotation
    found = _TYPES.get(annotation)
    if found is not None:
        return found
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        kept = [each for each in arguments if each is not type(None)]
        if len(kept) == 1:
            return type_of(kept[0], name)
    if origin is list and len(arguments) == 1:
        return t.ArrayType(element=type_of(arguments[0], name))
    if origin is dict and len(arguments) == 2:
        return t.MapType(key=type_of(arguments[0], name), value=type_of(arguments[1], name))
    if origin is tuple and arguments and Ellipsis not in arguments:
        return _row([(f"f{place}", each) for place, each in enumerate(arguments)], name)
    if inspect.isclass(annotation) and issubclass(annotation, tuple) and hasattr(annotation, "_fields"):
        return _row(list(typing.get_type_hints(annotation).items()), name)
    raise SqlError(f"{name}: no type of SQL is known for the annotation {annotation!r}; give result_type")


def _row(fields: list[tuple[str, Any]], name: str) -> RowType:
    return RowType(fields=tuple(RowField(field, type_of(each, name)) for field, each in fields))


def row_types_of(annotation: Any, name: str) -> list[LogicalType]:
    """The column types of a table function, from `Iterator[tuple[int, str]]` or `Iterator[int]`."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is None or not inspect.isclass(origin) or not issubclass(origin, Iterable) or not arguments:
        raise SqlError(f"{name}: a table function returns rows: annotate it `-> Iterator[tuple[...]]`")
    found = type_of(arguments[0], name)
    return [each.type for each in found.fields] if isinstance(found, RowType) else [found]
