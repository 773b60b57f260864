"""Where expressions begin: columns, constants, functions that have no first argument."""

from __future__ import annotations

from typing import Any

from headwater.common.errors import SqlError
from headwater.table.expression import Expression, node_of, type_node
from headwater.table.parser.ast import expressions as ast
from headwater.table.parser.parse import parse_expression
from headwater.table.types.logical import LogicalType

__all__ = [
    "and_", "array", "call", "call_sql", "coalesce", "col", "concat", "current_date", "current_timestamp",
    "if_then_else", "lit", "map_", "not_", "null_of", "or_", "pi", "rand", "row", "timestamp_diff",
]  # fmt: skip


def col(name: str) -> Expression:
    """A column by its name."""
    return Expression(ast.Name((name,)))


def lit(v: Any, data_type: LogicalType | None = None) -> Expression:
    """A constant; its type is that of the same constant in SQL, or `data_type`."""
    node = node_of(v)
    return Expression(node if data_type is None else ast.Cast(node, type_node(data_type)))


def null_of(data_type: LogicalType) -> Expression:
    return Expression(ast.Cast(ast.Null(), type_node(data_type)))


def call(f: str, *args: Any) -> Expression:
    """A function of SQL by its name."""
    if not isinstance(f, str):
        raise SqlError("call() takes the name of a function; functions of Python are not there yet")
    return Expression(ast.Call((f,), tuple(map(node_of, args))))


def call_sql(sql_expression: str) -> Expression:
    """An expression that is written in SQL."""
    return Expression(parse_expression(sql_expression))


def _folded(operator: str, values: tuple[Any, ...]) -> Expression:
    node = node_of(values[0])
    for value in values[1:]:
        node = ast.Operation(operator, node, node_of(value))
    return Expression(node)


def and_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression:
    return _folded("AND", (predicate0, predicate1, *predicates))


def or_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression:
    return _folded("OR", (predicate0, predicate1, *predicates))


def not_(expression: Any) -> Expression:
    return Expression(ast.Unary("NOT", node_of(expression)))


def if_then_else(condition: Any, if_true: Any, if_false: Any) -> Expression:
    return Expression(ast.Case(None, (ast.When(node_of(condition), node_of(if_true)),), node_of(if_false)))


def coalesce(*args: Any) -> Expression:
    return call("COALESCE", *args)


def concat(first: Any, *others: Any) -> Expression:
    return call("CONCAT", first, *others)


def array(head: Any, *tail: Any) -> Expression:
    return Expression(ast.ArrayOf(tuple(map(node_of, (head, *tail)))))


def map_(key: Any, value: Any, *tail: Any) -> Expression:
    return Expression(ast.MapOf(tuple(map(node_of, (key, value, *tail)))))


def row(head: Any, *tail: Any) -> Expression:
    return Expression(ast.RowOf(tuple(map(node_of, (head, *tail)))))


def current_date() -> Expression:
    return Expression(ast.Call(("CURRENT_DATE",), niladic=True))


def current_timestamp() -> Expression:
    return Expression(ast.Call(("CURRENT_TIMESTAMP",), niladic=True))


def timestamp_diff(time_point_unit: Any, time_point1: Any, time_point2: Any) -> Expression:
    word = ast.Symbol(str(getattr(time_point_unit, "name", time_point_unit)).upper())
    return Expression(ast.Call(("TIMESTAMPDIFF",), (word, node_of(time_point1), node_of(time_point2))))


def pi() -> Expression:
    return call("PI")


def rand(seed: Any = None) -> Expression:
    return call("RAND") if seed is None else call("RAND", seed)
