"""Where expressions begin: columns, constants, functions that have no first argument."""

from __future__ import annotations

from typing import Any

from headwater.common.errors import SqlError
from headwater.table.column_selection import ColumnRange, ColumnSelection
from headwater.table.expression import Expression, JsonOnNull, node_of, type_node
from headwater.table.parser.ast import expressions as ast
from headwater.table.parser.parse import parse_expression
from headwater.table.types.logical import LogicalType

__all__ = [
    "CURRENT_RANGE", "CURRENT_ROW", "UNBOUNDED_RANGE", "UNBOUNDED_ROW", "and_", "array", "atan2", "call", "call_sql",
    "coalesce", "col", "concat", "concat_ws", "convert_tz", "current_date", "current_time", "current_timestamp",
    "current_watermark", "date_format", "descriptor", "e", "from_unixtime", "if_then_else", "json_array",
    "json_object", "json_string", "lag", "lead", "lit", "local_time", "local_timestamp", "log", "map_",
    "map_from_arrays", "negative", "not_", "null_of", "or_", "pi", "rand", "rand_integer", "range_", "row",
    "row_interval", "source_watermark", "timestamp_diff", "to_date", "to_timestamp", "to_timestamp_ltz",
    "unix_timestamp", "uuid", "with_all_columns", "with_columns", "without_columns",
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


def call(f: Any, *args: Any) -> Expression:
    """A function of SQL by its name, or one of the user (`udf`, `udtf`, `udaf`)."""
    if callable(f):
        found = f(*args)
        if not isinstance(found, Expression):
            raise SqlError("call() takes a name or a function that udf() made, found a plain function of Python")
        return found
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


def _niladic(name: str) -> Expression:
    return Expression(ast.Call((name,), niladic=True))


def _given(name: str, *arguments: Any) -> Expression:
    """A call without the last arguments that are None."""
    while arguments and arguments[-1] is None:
        arguments = arguments[:-1]
    return call(name, *arguments)


# -- Time


def current_date() -> Expression:
    return _niladic("CURRENT_DATE")


def current_time() -> Expression:
    return _niladic("CURRENT_TIME")


def current_timestamp() -> Expression:
    return _niladic("CURRENT_TIMESTAMP")


def local_time() -> Expression:
    return _niladic("LOCALTIME")


def local_timestamp() -> Expression:
    return _niladic("LOCALTIMESTAMP")


def current_watermark(rowtimeAttribute: Any) -> Expression:
    return call("CURRENT_WATERMARK", rowtimeAttribute)


def source_watermark() -> Expression:
    """The watermark that the source has, in `Schema…watermark("ts", source_watermark())`."""
    return call("SOURCE_WATERMARK")


def to_date(date_str: Any, format: Any = None) -> Expression:
    return _given("TO_DATE", date_str, format)


def to_timestamp(timestamp_str: Any, format: Any = None) -> Expression:
    return _given("TO_TIMESTAMP", timestamp_str, format)


def to_timestamp_ltz(*args: Any) -> Expression:
    return call("TO_TIMESTAMP_LTZ", *args)


def date_format(timestamp: Any, format: Any) -> Expression:
    return call("DATE_FORMAT", timestamp, format)


def convert_tz(date_str: Any, tz_from: Any, tz_to: Any) -> Expression:
    return call("CONVERT_TZ", date_str, tz_from, tz_to)


def from_unixtime(unixtime: Any, format: Any = None) -> Expression:
    return _given("FROM_UNIXTIME", unixtime, format)


def unix_timestamp(date_str: Any = None, format: Any = None) -> Expression:
    return _given("UNIX_TIMESTAMP", date_str, format)


# -- Windows


UNBOUNDED_ROW = Expression(ast.Symbol("UNBOUNDED ROW"))
"""`Over…preceding(UNBOUNDED_ROW)`: from the first row on."""
UNBOUNDED_RANGE = Expression(ast.Symbol("UNBOUNDED RANGE"))
"""The same, where the rows of one time are seen together."""
CURRENT_ROW = Expression(ast.Symbol("CURRENT ROW"))
"""`Over…following(CURRENT_ROW)`: up to the row itself."""
CURRENT_RANGE = Expression(ast.Symbol("CURRENT RANGE"))
"""Up to the last row of the row's time."""


def row_interval(rows: int) -> Expression:
    """So many rows, for `Over…preceding`."""
    return Expression(ast.Call(("ROW_INTERVAL",), (node_of(rows),)))


def timestamp_diff(time_point_unit: Any, time_point1: Any, time_point2: Any) -> Expression:
    word = ast.Symbol(str(getattr(time_point_unit, "name", time_point_unit)).upper())
    return Expression(ast.Call(("TIMESTAMPDIFF",), (word, node_of(time_point1), node_of(time_point2))))


def pi() -> Expression:
    return call("PI")


def rand(seed: Any = None) -> Expression:
    return call("RAND") if seed is None else call("RAND", seed)


def lag(expr: Any, offset: Any = 1, default: Any = None) -> Expression:
    """The value `offset` rows before, for `.over(col("w"))`."""
    return _given("LAG", expr, offset, default)


def lead(expr: Any, offset: Any = 1, default: Any = None) -> Expression:
    """The value `offset` rows after, for `.over(col("w"))`."""
    return _given("LEAD", expr, offset, default)


# -- Numbers and strings


def e() -> Expression:
    return call("E")


def rand_integer(bound: Any, seed: Any = None) -> Expression:
    return call("RAND_INTEGER", bound) if seed is None else call("RAND_INTEGER", seed, bound)


def atan2(y: Any, x: Any) -> Expression:
    return call("ATAN2", y, x)


def negative(v: Any) -> Expression:
    return Expression(ast.Unary("-", node_of(v)))


def log(v: Any, base: Any = None) -> Expression:
    return Expression(node_of(v)).log(base)


def concat_ws(separator: Any, first: Any, *others: Any) -> Expression:
    return call("CONCAT_WS", separator, first, *others)


def uuid() -> Expression:
    return call("UUID")


def map_from_arrays(key: Any, value: Any) -> Expression:
    return call("MAP_FROM_ARRAYS", key, value)


# -- JSON


def json_string(value: Any) -> Expression:
    """A value as JSON text."""
    return call("JSON_STRING", value)


def json_object(on_null: JsonOnNull = JsonOnNull.NULL, *args: Any) -> Expression:
    """A JSON object of keys and values, one after another."""
    return _json("JSON_OBJECT", on_null, args)


def json_array(on_null: JsonOnNull = JsonOnNull.ABSENT, *args: Any) -> Expression:
    return _json("JSON_ARRAY", on_null, args)


def _json(name: str, on_null: JsonOnNull, args: tuple[Any, ...]) -> Expression:
    return Expression(ast.Call((name,), tuple(map(node_of, args)), clauses=(ast.Clause(f"{on_null.value} ON NULL"),)))


# -- Columns


def with_all_columns() -> Expression:
    """All columns of the table."""
    return col("*")


def with_columns(head: Any, *tails: Any) -> Expression:
    """Columns by name, by place (from 1) or by `range_`."""
    return Expression(ColumnSelection(tuple(map(node_of, (head, *tails)))))


def without_columns(head: Any, *tails: Any) -> Expression:
    """All columns but these."""
    return Expression(ColumnSelection(tuple(map(node_of, (head, *tails))), negated=True))


def range_(start: str | int, end: str | int) -> Expression:
    """The columns from one to another, by names or by places (from 1), for `with_columns`."""
    return Expression(ColumnRange(start, end))


def descriptor(*column_names: str) -> Expression:
    """Names of columns, as an argument of a table function."""
    return Expression(ast.Descriptor(column_names))
