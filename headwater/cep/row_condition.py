"""Expressions of the Table API as conditions of a pattern: `where(col("amount") > 100)`."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pyarrow as pa

from headwater.common.errors import PatternError, SqlError, short_repr
from headwater.operators.cep.conditions import Test
from headwater.operators.cep.expressions import field_of
from headwater.table.catalog.manager import CatalogManager
from headwater.table.expression import Expression
from headwater.table.functions.definition import FunctionKind
from headwater.table.functions.frame import Frame
from headwater.table.parser.ast import expressions as ast
from headwater.table.parser.ast.base import Node
from headwater.table.plan.calls import find_function
from headwater.table.plan.context import BindContext, new_column
from headwater.table.plan.expression_binder import Allowed, ExpressionBinder
from headwater.table.plan.scope import Range, Scope
from headwater.table.stream.rows import NAN, frozen_column
from headwater.table.stream.scalars import scalar
from headwater.table.types.arrow import to_arrow
from headwater.table.user.calls import UserCall
from headwater.table.values import inferred_type

_PLAIN = (int, str, bytes, decimal.Decimal, type(None))
_TIMES = (datetime.date, datetime.time)


def row_condition(method: str, step: str, given: Expression) -> Test:
    """The condition that an expression says. `PatternError` if it can be none, whatever the types of its columns."""
    for call in (node for node in _nodes(given.node) if isinstance(node, ast.Call)):
        try:
            definition = None if isinstance(call, UserCall) else find_function(".".join(call.name))
        except SqlError as error:
            raise PatternError(f"{method}() of step '{step}': {error}") from None
        if definition is None or definition.kind is not FunctionKind.SCALAR or not definition.deterministic:
            raise PatternError(
                f"{method}() of step '{step}': {'.'.join(call.name)} has no place in a condition; those of SQL that "
                "depend on the event alone do. Use a function of the event and a context"
            )
    return Test(RowCondition(given.node), text=repr(given))


class RowCondition:
    """Asks an event as SQL asks a row: it fits if the expression is TRUE, not if it is FALSE or NULL.

    Columns are fields of the event. Their types are inferred as PyFlink does it, once for each combination of Python
    types. A key that a dict lacks is NULL. Raises SqlError if another event lacks the field, or a type does not fit.
    """

    def __init__(self, node: Any) -> None:
        self._node = node
        self._names = list(dict.fromkeys(each.parts[0] for each in _nodes(node) if isinstance(each, ast.Name)))
        self._prepared: dict[tuple[type, ...], Callable[[list[Any]], Any]] = {}

    def __call__(self, event: Any) -> bool:
        values = [_field(event, name) for name in self._names]
        types = tuple(map(type, values))
        compute = self._prepared.get(types)
        if compute is None:
            compute = self._prepared[types] = self._prepare(values)
        return compute(values) is True

    def __reduce__(self) -> Any:
        return RowCondition, (self._node,)

    def _prepare(self, values: list[Any]) -> Callable[[list[Any]], Any]:
        columns = [new_column(name, inferred_type(value)) for name, value in zip(self._names, values, strict=True)]
        scope, allowed = Scope([Range((), tuple(columns))]), Allowed("a condition")
        binder = ExpressionBinder(BindContext("", CatalogManager()), scope, _no_query, allowed)
        compute = scalar(binder.bind_condition(self._node), columns, lambda: Frame(1))
        if all(isinstance(value, _PLAIN) for value in values):
            return compute
        freeze = [_frozen_as(value, to_arrow(column.type)) for value, column in zip(values, columns, strict=True)]
        return lambda values: compute([frozen(value) for frozen, value in zip(freeze, values, strict=True)])


def _field(event: Any, name: str) -> Any:
    value = field_of(event, name)
    if value is None and not isinstance(event, dict) and not hasattr(event, name):
        raise SqlError(f"the event has no field '{name}': {short_repr(event)}")
    return value


def _frozen_as(example: Any, kind: pa.DataType) -> Callable[[Any], Any]:
    """How values like `example` become those of `frozen_rows`."""
    if isinstance(example, _PLAIN):
        return lambda value: value
    if isinstance(example, float):
        return lambda value: value if value == value else NAN
    if isinstance(example, _TIMES):
        return lambda value: frozen_column(pa.array([_without_zone(value)], kind))[0]
    raise SqlError(f"a condition of SQL takes numbers, text, bytes and times, found {short_repr(example)}")


def _without_zone(value: Any) -> Any:
    if getattr(value, "tzinfo", None) is not None:
        raise SqlError(f"{value!r} has a time zone, which a TIMESTAMP has not; use a function")
    return value


def _no_query(*_: Any) -> NoReturn:
    raise SqlError("a query has no place in a condition")


def _nodes(node: Any) -> Iterator[Node]:
    """`node` and all that is in it."""
    if isinstance(node, tuple):
        for each in node:
            yield from _nodes(each)
    elif isinstance(node, Node):
        yield node
        for each in dataclasses.fields(node):
            yield from _nodes(getattr(node, each.name))
