"""Queries that methods of Table with functions of users mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.common.errors import SqlError
from headwater.table.expression import Expression, node_of, type_node
from headwater.table.functions.definition import FunctionKind
from headwater.table.parser.ast import expressions as ex
from headwater.table.parser.ast import queries as ast
from headwater.table.parser.ast.base import Expression as Node
from headwater.table.parser.ast.base import Query
from headwater.table.plan.given import Given
from headwater.table.types.logical import ArrayType, LogicalType, RowType
from headwater.table.user.calls import UserCall
from headwater.table.user.definitions import BindUser

if TYPE_CHECKING:
    from headwater.table.udf import UserDefinedFunctionWrapper


_RANGE = "$f"


def lateral(
    table: Given,
    function: Expression | UserDefinedFunctionWrapper,
    kind: str,
    predicate: Expression | None,
    row: RowType,
) -> Query:
    """The rows of a table, each with those of a table function."""
    call = _applied(function, row)
    node = _call(call, FunctionKind.TABLE, "a table function")
    right = ast.Aliased(ast.Unnest((node,)), _RANGE, _names(call, node))
    condition = ex.Boolean(True) if predicate is None else node_of(predicate)
    return ast.Select((ast.SelectItem(ex.Star()),), ast.Join(kind, table, right, condition))


def mapped(table: Given, function: Expression | UserDefinedFunctionWrapper, row: RowType) -> Query:
    call = _applied(function, row)
    node = _call(call, FunctionKind.SCALAR, "a scalar function")
    result = _result(node)
    if not isinstance(result, RowType):
        return ast.Select((ast.SelectItem(node, (_aliases(call) or ("_c0",))[0]),), table)
    names = _aliases(call) or tuple(each.name for each in result.fields)
    if len(names) != len(result.fields):
        raise SqlError(f"map(): {len(names)} names for {len(result.fields)} columns")
    fields = zip(names, result.fields, strict=True)
    items = tuple(ast.SelectItem(ex.Field(ex.Name(("r",)), each.name), name) for name, each in fields)
    return ast.Select(items, ast.Derived(ast.Select((ast.SelectItem(node, "r"),), table)))


def flat_mapped(table: Given, function: Expression | UserDefinedFunctionWrapper, row: RowType) -> Query:
    call = _applied(function, row)
    node = _call(call, FunctionKind.TABLE, "a table function")
    right = ast.Aliased(ast.Unnest((node,)), _RANGE, _names(call, node))
    return ast.Select((ast.SelectItem(ex.Star((_RANGE,))),), ast.Join("CROSS", table, right))


def aggregated(
    table: Given,
    function: Expression | UserDefinedFunctionWrapper,
    keys: tuple[Node, ...],
    row: RowType,
    flat: bool,
    more: tuple[ast.SelectItem, ...] = (),
    more_keys: tuple[Node, ...] = (),
) -> Query:
    """The groups, and the fields that an aggregate gives for each; of a table aggregate, as many rows as it gives.

    `more` are further columns, with names, that the groups by `more_keys` have.
    """
    call = _applied(function, row)
    node = _call(call, FunctionKind.AGGREGATE, "an aggregate")
    result = _result(node)
    if flat and not isinstance(result, ArrayType):
        raise SqlError("flat_aggregate() takes a table aggregate: what udtaf() makes")
    groups: list[ast.SelectItem] = [*more]
    for key in keys:
        if not isinstance(key, ex.Name):
            raise SqlError("group_by() before aggregate() takes columns; add_columns() first")
        groups.append(ast.SelectItem(key, key.parts[-1]))
    inner = ast.Derived(ast.Select((*groups, ast.SelectItem(node, "$r")), table, group_by=(*keys, *more_keys) or None))
    kept = tuple(ast.SelectItem(ex.Name((each.alias or "",))) for each in groups)
    if flat:
        right = ast.Aliased(ast.Unnest((ex.Name(("$r",)),)), _RANGE, _names(call, node))
        return ast.Select((*kept, ast.SelectItem(ex.Star((_RANGE,)))), ast.Join("CROSS", inner, right))
    if not isinstance(result, RowType):
        return ast.Select((*kept, ast.SelectItem(ex.Name(("$r",)), (_aliases(call) or ("_c0",))[0])), inner)
    names = _aliases(call) or tuple(each.name for each in result.fields)
    fields = zip(names, result.fields, strict=True)
    items = tuple(ast.SelectItem(ex.Field(ex.Name(("$r",)), each.name), name) for name, each in fields)
    return ast.Select((*kept, *items), inner)


def _applied(function: Expression | UserDefinedFunctionWrapper, row: RowType) -> Expression:
    """A function that is not called gets the whole row, as one argument."""
    if isinstance(function, Expression):
        return function
    whole = ex.Cast(ex.RowOf(tuple(ex.Name((each.name,)) for each in row.fields)), type_node(row))
    return function(Expression(whole))


def _call(call: Expression, kind: FunctionKind, what: str) -> UserCall:
    node = call.node if isinstance(call, Expression) else None
    if not isinstance(node, UserCall) or node.definition is None or node.definition.kind is not kind:
        raise SqlError(f"found {call!r}, expected a call of {what} of the user")
    return node


def _result(node: UserCall) -> LogicalType:
    assert node.definition is not None and isinstance(node.definition.bind_types, BindUser)
    return node.definition.bind_types.result


def _aliases(call: Expression) -> tuple[str, ...]:
    return call.names


def _names(call: Expression, node: UserCall) -> tuple[str, ...]:
    result = _result(node)
    assert isinstance(result, ArrayType) and isinstance(result.element, RowType)
    return _aliases(call) or tuple(each.name for each in result.element.fields)
