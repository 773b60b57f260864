"""SUM, COUNT, AVG, MIN and MAX of a few rows, in Python: for few values a vectorised kernel takes milliseconds.

They give what the kernels give, to the type: integers wrap around, and their mean is an integer; decimals are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from headwater.table.functions.casting.from_text import EXACT, fit_decimal
from headwater.table.plan.expressions import AggregateCall
from headwater.table.stream.rows import NAN
from headwater.table.stream.scalars import wrapped
from headwater.table.types import decimals
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType, TypeRoot

RowAggregate = Callable[[int, Sequence[Sequence[Any]]], Any]
"""From the number of rows, and the values of each argument in the form of `frozen_rows`, to a value in that form."""

_ORDERED = (TypeRoot.CHAR, TypeRoot.VARCHAR, TypeRoot.BOOLEAN)


def row_aggregate(call: AggregateCall) -> RowAggregate | None:
    """The aggregate in Python; None if only the kernel is certain to be right."""
    if call.name == "COUNT":
        return _count
    kind, result = call.binding.arg_types[0] if call.binding.arg_types else None, call.binding.result_type
    if kind is None:
        return None
    match call.name:
        case "SUM" if _can_add(kind):
            return lambda rows, arguments: _sum(_known(arguments[0]), kind, result)
        case "AVG" if _can_add(kind):
            return lambda rows, arguments: _mean(_known(arguments[0]), kind, result)
        case "MIN" if _can_order(kind):
            return lambda rows, arguments: min(_known(arguments[0]), default=None)
        case "MAX" if _can_order(kind):
            return lambda rows, arguments: max(_known(arguments[0]), default=None)
    return None


def _can_add(kind: LogicalType) -> bool:
    return t.is_integer(kind) or kind.root is TypeRoot.DOUBLE or isinstance(kind, t.DecimalType)


def _can_order(kind: LogicalType) -> bool:
    return t.is_integer(kind) or kind.root in _ORDERED or isinstance(kind, t.DecimalType) or t.is_temporal(kind)


def _count(rows: int, arguments: Sequence[Sequence[Any]]) -> int:
    if not arguments:
        return rows
    return sum(all(value is not None for value in row) for row in zip(*arguments, strict=True))


def _known(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _sum(values: list[Any], kind: LogicalType, result: LogicalType) -> Any:
    if not values:
        return None
    if isinstance(kind, t.DecimalType):
        return _total(values, kind)
    if kind.root is TypeRoot.DOUBLE:
        return _float_total(values)
    return wrapped(sum(values), result.root)


def _mean(values: list[Any], kind: LogicalType, result: LogicalType) -> Any:
    if not values:
        return None
    count = len(values)
    if isinstance(result, t.DecimalType) and isinstance(kind, t.DecimalType):
        exact = _total(values, kind)
        return (
            None if exact is None else fit_decimal(EXACT.divide(exact, Decimal(count)), result.precision, result.scale)
        )
    if kind.root is TypeRoot.DOUBLE:
        about = _float_total(values)
        return about if about == NAN else about / count
    total = wrapped(sum(values), TypeRoot.BIGINT)
    return total // count if total >= 0 else -(-total // count)


def _total(values: list[Any], kind: t.DecimalType) -> Decimal | None:
    total = Decimal(0)
    for value in values:
        total = EXACT.add(total, value)
    return fit_decimal(total, decimals.total(kind).precision, kind.scale)


def _float_total(values: list[Any]) -> Any:
    total = 0.0
    for value in values:  # not sum(), which corrects what is lost by rounding
        total += math.nan if value == NAN else value
    return NAN if math.isnan(total) else total
