"""Computes an expression for one row of values, where rows cannot be computed together.

Comparisons, logic and arithmetic of plain types run as Python closures; everything else asks the vectorised kernel with
one row, which costs about a hundred times as much.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from headwater.table.functions.frame import Frame
from headwater.table.plan.expressions import Column, ColumnRef, FunctionCall, Literal, Rex
from headwater.table.stream.evaluate import compiled, evaluated
from headwater.table.stream.rows import frozen_column, thawed_column
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType, TypeRoot, is_exact

Scalar = Callable[[Sequence[Any]], Any]
"""From values in the form of `frozen_rows` to a value in that form."""

_BITS = {TypeRoot.TINYINT: 8, TypeRoot.SMALLINT: 16, TypeRoot.INTEGER: 32, TypeRoot.BIGINT: 64}
_COMPARED = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPUTED = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def scalar(rex: Rex, columns: Sequence[Column], frame: Callable[[], Frame]) -> Scalar:
    """Prepare an expression over values of `columns`."""
    places = {column.id: place for place, column in enumerate(columns)}
    found = _quick(rex, places)
    return found if found is not None else _by_kernel(rex, columns, frame)


def _quick(rex: Rex, places: dict[int, int]) -> Scalar | None:
    """A closure that gives what the kernel gives; None if that is not certain."""
    if isinstance(rex, ColumnRef):
        return operator.itemgetter(places[rex.column.id])
    if isinstance(rex, Literal):
        array = pa.array([rex.value], to_arrow(rex.type))
        constant = frozen_column(array)[0]
        return lambda values: constant
    if not isinstance(rex, FunctionCall):
        return None
    inner = [_quick(each, places) for each in rex.arguments]
    if any(each is None for each in inner):
        return None
    parts: list[Any] = inner
    types = [each.type for each in rex.arguments]
    double = any(each.root is TypeRoot.DOUBLE for each in types)
    match rex.name:
        case "AND":
            return lambda values: _and(parts, values)
        case "OR":
            return lambda values: _or(parts, values)
        case "NOT":
            return lambda values: None if (value := parts[0](values)) is None else not value
        case "IS NULL":
            return lambda values: parts[0](values) is None
        case "IS NOT NULL":
            return lambda values: parts[0](values) is not None
        case "=" | "<>" | "<" | "<=" | ">" | ">=" if _alike(types):
            return _comparison(rex.name, parts[0], parts[1], double)
        case "IN" if _alike(types):
            equal = [_comparison("=", parts[0], each, double) for each in parts[1:]]
            return lambda values: _or(equal, values)
        case "BETWEEN" if _alike(types):
            bounds = [_comparison(">=", parts[0], parts[1], double), _comparison("<=", parts[0], parts[2], double)]
            return lambda values: _and(bounds, values)
        case "+" | "-" | "*" if len(parts) == 2 and all(each.type.root in _BITS for each in (rex, *rex.arguments)):
            compute, (left, right), root = _COMPUTED[rex.name], parts, rex.type.root
            return lambda values: _wrapped_if_known(compute, left(values), right(values), root)
    return None


def wrapped(value: int, root: TypeRoot) -> int:
    """An integer as its type keeps it: what does not fit wraps around."""
    half = 1 << (_BITS[root] - 1)
    return (value + half) % (2 * half) - half


def _wrapped_if_known(compute: Callable[[Any, Any], Any], left: Any, right: Any, root: TypeRoot) -> Any:
    return None if left is None or right is None else wrapped(compute(left, right), root)


def _alike(types: Sequence[LogicalType]) -> bool:
    """Whether Python compares values of these types as SQL does: exact numbers, doubles and integers, text, or one kind
    of time.
    """
    if all(is_exact(each) for each in types):
        return True
    if all(each.root in (TypeRoot.CHAR, TypeRoot.VARCHAR) for each in types):
        return True
    if all(each.root is TypeRoot.DOUBLE or each.root in _BITS for each in types):
        return True
    kinds = {to_arrow(each) for each in types}
    return len(kinds) == 1 and pa.types.is_temporal(next(iter(kinds)))


def _comparison(name: str, left: Scalar, right: Scalar, double: bool) -> Scalar:
    compare = _COMPARED[name]
    if double:
        return lambda values: _compared(compare, _number(left(values)), _number(right(values)))
    return lambda values: _compared(compare, left(values), right(values))


def _compared(compare: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    return None if left is None or right is None else compare(left, right)


def _number(value: Any) -> Any:
    """Integers are compared with doubles as doubles. A NaN is stored as text that `float` reads."""
    return None if value is None else float(value)


def _and(parts: Sequence[Scalar], values: Sequence[Any]) -> Any:
    found: Any = True
    for part in parts:
        value = part(values)
        if value is None:
            found = None
        elif not value:
            return False
    return found


def _or(parts: Sequence[Scalar], values: Sequence[Any]) -> Any:
    found: Any = False
    for part in parts:
        value = part(values)
        if value is None:
            found = None
        elif value:
            return True
    return found


def _by_kernel(rex: Rex, columns: Sequence[Column], frame: Callable[[], Frame]) -> Scalar:
    expression = compiled(rex, columns)
    kinds = [to_arrow(column.type) for column in columns]
    schema = pa.schema([(str(place), kind) for place, kind in enumerate(kinds)])

    def compute(values: Sequence[Any]) -> Any:
        arrays = [thawed_column([value], kind) for value, kind in zip(values, kinds, strict=True)]
        if not arrays:
            rows = pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])))
        else:
            rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
        return frozen_column(evaluated(expression, rows, frame()))[0]

    return compute
