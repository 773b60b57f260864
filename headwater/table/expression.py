"""Expressions of the Table API: the syntax tree of SQL, built by Python operators and methods."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
from typing import Any

from headwater.common.errors import SqlError
from headwater.table.expression_functions import SqlFunctions
from headwater.table.expression_words import (
    JsonExistsOnError,
    JsonOnNull,
    JsonQueryOnEmptyOrError,
    JsonQueryWrapper,
    JsonType,
    JsonValueOnEmptyOrError,
    TimeIntervalUnit,
    TimePointUnit,
)
from headwater.table.parser.ast import expressions as ast
from headwater.table.parser.ast import queries
from headwater.table.parser.ast.base import DataType
from headwater.table.parser.ast.base import Expression as Node
from headwater.table.parser.parse import parse_type
from headwater.table.parser.printing.queries import print_expression
from headwater.table.plan.given import Given
from headwater.table.types.logical import STRING, LogicalType
from headwater.table.user.calls import UserCall

__all__ = [
    "Expression",
    "JsonExistsOnError",
    "JsonOnNull",
    "JsonQueryOnEmptyOrError",
    "JsonQueryWrapper",
    "JsonType",
    "JsonValueOnEmptyOrError",
    "TimeIntervalUnit",
    "TimePointUnit",
]


def node_of(value: Any) -> Node:
    """The tree of an Expression, or of a Python value as a constant."""
    if isinstance(value, Expression):
        return value.node
    return literal(value)


def literal(value: Any) -> Node:
    """The constant of SQL that a Python value is."""
    match value:
        case None:
            return ast.Null()
        case bool():
            return ast.Boolean(value)
        case int() | decimal.Decimal():
            return ast.Number(format(value, "f") if isinstance(value, decimal.Decimal) else str(value))
        case float():
            return ast.Number(f"{value!r}" if "e" in repr(value) else f"{value!r}e0")
        case str():
            return ast.Text(value)
        case bytes():
            return ast.Binary(value.hex().upper())
        case datetime.datetime():
            if value.tzinfo is not None:
                raise SqlError("a constant with a time zone: use to_timestamp_ltz(...)")
            return ast.Temporal("TIMESTAMP", value.isoformat(" ", "microseconds" if value.microsecond else "seconds"))
        case datetime.date():
            return ast.Temporal("DATE", value.isoformat())
        case datetime.time():
            return ast.Temporal("TIME", value.isoformat())
        case datetime.timedelta():
            days, seconds = abs(value).days, abs(value).seconds
            text = f"{days} {seconds // 3600}:{seconds % 3600 // 60:02}:{seconds % 60:02}.{abs(value).microseconds:06}"
            return ast.Interval(text, "DAY", "SECOND", negative=value < datetime.timedelta(0))
        case list() | tuple():
            return ast.ArrayOf(tuple(node_of(each) for each in value))
    raise SqlError(f"{value!r} ({type(value).__name__}) is no constant of SQL")


def type_node(type_: LogicalType) -> DataType:
    return parse_type(type_.sql())


class Expression(SqlFunctions):
    """A value that is computed for each row. `col("a") + 1`, `col("s").upper_case`, `lit(1).alias("one")`."""

    def __init__(self, node: Node, name: str | None = None, order: ast.SortItem | None = None) -> None:
        self.node = node
        self.name = name
        """The alias, if there is one."""
        self.names: tuple[str, ...] = () if name is None else (name,)
        """All aliases, of a call of a table function."""
        self.order = order
        """How `order_by` sorts by it, if `.asc` or `.desc` said so."""

    def __repr__(self) -> str:
        return print_expression(self.node)

    def __bool__(self) -> bool:
        raise SqlError("an Expression is neither true nor false: use & | ~ instead of and, or, not")

    def __getattr__(self, name: str) -> Expression:
        """A field of a row: `table.address.city`."""
        if name.startswith("_"):
            raise AttributeError(f"an Expression has no '{name}'")
        return self.get(name)

    __hash__ = None  # type: ignore[assignment]

    def _call(self, name: str, *arguments: Any, **more: Any) -> Expression:
        return Expression(ast.Call((name,), (self.node, *map(node_of, arguments)), **more))

    def _operation(self, operator: str, other: Any, swapped: bool = False) -> Expression:
        left, right = (node_of(other), self.node) if swapped else (self.node, node_of(other))
        return Expression(ast.Operation(operator, left, right))

    # -- Operators

    def __add__(self, other: Any) -> Expression:
        return self._operation("+", other)

    def __radd__(self, other: Any) -> Expression:
        return self._operation("+", other, True)

    def __sub__(self, other: Any) -> Expression:
        return self._operation("-", other)

    def __rsub__(self, other: Any) -> Expression:
        return self._operation("-", other, True)

    def __mul__(self, other: Any) -> Expression:
        return self._operation("*", other)

    def __rmul__(self, other: Any) -> Expression:
        return self._operation("*", other, True)

    def __truediv__(self, other: Any) -> Expression:
        return self._operation("/", other)

    def __rtruediv__(self, other: Any) -> Expression:
        return self._operation("/", other, True)

    def __mod__(self, other: Any) -> Expression:
        return self._call("MOD", other)

    def __rmod__(self, other: Any) -> Expression:
        return Expression(ast.Call(("MOD",), (node_of(other), self.node)))

    def __pow__(self, other: Any) -> Expression:
        return self._call("POWER", other)

    def __rpow__(self, other: Any) -> Expression:
        return Expression(ast.Call(("POWER",), (node_of(other), self.node)))

    def __abs__(self) -> Expression:
        return self.abs

    def __neg__(self) -> Expression:
        return Expression(ast.Unary("-", self.node))

    def __pos__(self) -> Expression:
        return self

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self._operation("=", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self._operation("<>", other)

    def __lt__(self, other: Any) -> Expression:
        return self._operation("<", other)

    def __le__(self, other: Any) -> Expression:
        return self._operation("<=", other)

    def __gt__(self, other: Any) -> Expression:
        return self._operation(">", other)

    def __ge__(self, other: Any) -> Expression:
        return self._operation(">=", other)

    def __and__(self, other: Any) -> Expression:
        return self._operation("AND", other)

    def __rand__(self, other: Any) -> Expression:
        return self._operation("AND", other, True)

    def __or__(self, other: Any) -> Expression:
        return self._operation("OR", other)

    def __ror__(self, other: Any) -> Expression:
        return self._operation("OR", other, True)

    def __invert__(self) -> Expression:
        return Expression(ast.Unary("NOT", self.node))

    # -- Names, order, types

    def alias(self, name: str, *extra_names: str) -> Expression:
        """A new name. A table function has as many columns, and names, as its rows have fields."""
        if extra_names and not isinstance(self.node, UserCall):
            raise SqlError("alias() takes one name: a column has one")
        named = Expression(self.node, name)
        named.names = (name, *extra_names)
        return named

    @property
    def asc(self) -> Expression:
        return Expression(self.node, self.name, ast.SortItem(self.node))

    @property
    def desc(self) -> Expression:
        return Expression(self.node, self.name, ast.SortItem(self.node, True))

    def cast(self, data_type: LogicalType) -> Expression:
        return Expression(ast.Cast(self.node, type_node(data_type)))

    def try_cast(self, data_type: LogicalType) -> Expression:
        return Expression(ast.Cast(self.node, type_node(data_type), True))

    def get(self, name_or_index: str | int) -> Expression:
        """A field of a row by name."""
        if not isinstance(name_or_index, str):
            raise SqlError("get() takes the name of a field")
        return Expression(ast.Field(self.node, name_or_index))

    def at(self, index: Any) -> Expression:
        """An element of an array (from 1) or the value of a key of a map."""
        return Expression(ast.Item(self.node, node_of(index)))

    # -- Tests

    @property
    def is_null(self) -> Expression:
        return Expression(ast.Is(self.node, "NULL"))

    @property
    def is_not_null(self) -> Expression:
        return Expression(ast.Is(self.node, "NULL", True))

    @property
    def is_true(self) -> Expression:
        return Expression(ast.Is(self.node, "TRUE"))

    @property
    def is_false(self) -> Expression:
        return Expression(ast.Is(self.node, "FALSE"))

    @property
    def is_not_true(self) -> Expression:
        return Expression(ast.Is(self.node, "TRUE", True))

    @property
    def is_not_false(self) -> Expression:
        return Expression(ast.Is(self.node, "FALSE", True))

    def between(self, lower_bound: Any, upper_bound: Any) -> Expression:
        return Expression(ast.Between(self.node, node_of(lower_bound), node_of(upper_bound)))

    def not_between(self, lower_bound: Any, upper_bound: Any) -> Expression:
        return Expression(ast.Between(self.node, node_of(lower_bound), node_of(upper_bound), True))

    def in_(self, first_element_or_table: Any, *remaining_elements: Any) -> Expression:
        if hasattr(first_element_or_table, "_plan"):
            star = (queries.SelectItem(ast.Star()),)
            return Expression(ast.InQuery(self.node, queries.Select(star, Given(first_element_or_table._plan))))
        values = (first_element_or_table, *remaining_elements)
        return Expression(ast.InList(self.node, tuple(map(node_of, values))))

    def like(self, pattern: Any, escape: Any = None) -> Expression:
        return Expression(ast.Like("LIKE", self.node, node_of(pattern), None if escape is None else node_of(escape)))

    def similar(self, pattern: Any) -> Expression:
        return Expression(ast.Like("SIMILAR TO", self.node, node_of(pattern)))

    def then(self, if_true: Any, if_false: Any) -> Expression:
        """This condition decides between two values."""
        return Expression(ast.Case(None, (ast.When(self.node, node_of(if_true)),), node_of(if_false)))

    def if_null(self, null_replacement: Any) -> Expression:
        return self._call("COALESCE", null_replacement)

    # -- Aggregates

    @property
    def distinct(self) -> Expression:
        """This aggregate over different values only: `col("a").count.distinct`."""
        if not isinstance(self.node, ast.Call):
            raise SqlError("distinct belongs to an aggregate: col('a').count.distinct")
        return Expression(dataclasses.replace(self.node, distinct=True))

    def over(self, alias: Expression) -> Expression:
        """This aggregate over the rows of a window that `Table.over_window` names: `.over(col("w"))`."""
        if not isinstance(self.node, ast.Call) or not isinstance(alias.node, ast.Name):
            raise SqlError("over() is of an aggregate, and takes a window's name: col('a').sum.over(col('w'))")
        return Expression(dataclasses.replace(self.node, over=ast.WindowSpec(alias.node.parts[-1])))

    # -- Numbers

    def floor(self, time_interval_unit: Any = None) -> Expression:
        return self._rounded("FLOOR", time_interval_unit)

    def ceil(self, time_interval_unit: Any = None) -> Expression:
        return self._rounded("CEIL", time_interval_unit)

    def _rounded(self, name: str, unit: Any) -> Expression:
        words = () if unit is None else (ast.Symbol(str(getattr(unit, "name", unit)).upper()),)
        return Expression(ast.Call((name,), (self.node, *words)))

    def log(self, base: Any = None) -> Expression:
        """The natural logarithm, or that to a base."""
        return self._call("LN") if base is None else Expression(ast.Call(("LOG",), (node_of(base), self.node)))

    # -- Strings

    def concat(self, other: Any) -> Expression:
        return self._operation("||", other)

    def trim(self, character: Any = None) -> Expression:
        return self._trimmed("BOTH", character)

    def trim_leading(self, character: Any = None) -> Expression:
        return self._trimmed("LEADING", character)

    def trim_trailing(self, character: Any = None) -> Expression:
        return self._trimmed("TRAILING", character)

    def _trimmed(self, side: str, character: Any) -> Expression:
        what = node_of(" " if character is None else character)
        return Expression(ast.Call(("TRIM",), (ast.Symbol(side), what, self.node)))

    # -- JSON

    def is_json(self, json_type: JsonType | None = None) -> Expression:
        words = () if json_type is None else (ast.Text(json_type.value),)
        return Expression(ast.Call(("IS JSON",), (self.node, *words)))

    def json_exists(self, path: str, on_error: JsonExistsOnError | None = None) -> Expression:
        clauses = () if on_error is None else (ast.Clause(f"{on_error.value} ON ERROR"),)
        return self._call("JSON_EXISTS", path, clauses=clauses)

    def json_value(
        self,
        path: str,
        returning_type: LogicalType = STRING,
        on_empty: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_empty: Any = None,
        on_error: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_error: Any = None,
    ) -> Expression:
        """The scalar at a path, as a STRING if no type is given."""
        clauses = [ast.Clause("RETURNING", type_node(returning_type))]
        for when, word, default in (("EMPTY", on_empty, default_on_empty), ("ERROR", on_error, default_on_error)):
            value = node_of(default) if word is JsonValueOnEmptyOrError.DEFAULT else None
            clauses.append(ast.Clause(f"{word.value} ON {when}", value))
        return self._call("JSON_VALUE", path, clauses=tuple(clauses))

    def json_query(
        self,
        path: str,
        wrapping_behavior: JsonQueryWrapper = JsonQueryWrapper.WITHOUT_ARRAY,
        on_empty: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
        on_error: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
    ) -> Expression:
        """The JSON text at a path."""
        words = (f"{wrapping_behavior.value} WRAPPER", f"{on_empty.value} ON EMPTY", f"{on_error.value} ON ERROR")
        return self._call("JSON_QUERY", path, clauses=tuple(ast.Clause(each) for each in words))

    # -- Time

    def extract(self, time_interval_unit: Any) -> Expression:
        word = ast.Symbol(str(getattr(time_interval_unit, "name", time_interval_unit)).upper())
        return Expression(ast.Call(("EXTRACT",), (word, self.node)))

    @property
    def to_date(self) -> Expression:
        return Expression(ast.Cast(self.node, DataType("DATE")))

    @property
    def to_time(self) -> Expression:
        return Expression(ast.Cast(self.node, DataType("TIME")))

    @property
    def to_timestamp(self) -> Expression:
        return Expression(ast.Cast(self.node, DataType("TIMESTAMP", (3,))))

    def _interval(self, unit: str) -> Expression:
        if not isinstance(self.node, ast.Number):
            raise SqlError(f"{unit.lower()}s is for a constant: lit(10).{unit.lower()}s")
        text = self.node.text
        return Expression(ast.Interval(text.lstrip("-"), unit, negative=text.startswith("-")))

    @property
    def milli(self) -> Expression:
        """A time: lit(10) of milliseconds."""
        if not isinstance(self.node, ast.Number):
            raise SqlError("millis is for a constant: lit(10).millis")
        return Expression(ast.Number(str(decimal.Decimal(self.node.text).scaleb(-3))))._interval("SECOND")

    @property
    def millis(self) -> Expression:
        return self.milli

    # -- Windows

    @property
    def start(self) -> Expression:
        """The start of a window: `col("w").start`."""
        return Expression(ast.Field(self.node, "$start"))

    @property
    def end(self) -> Expression:
        """The end of a window."""
        return Expression(ast.Field(self.node, "$end"))

    @property
    def proctime(self) -> Expression:
        return Expression(ast.Field(self.node, "$proctime"))

    @property
    def rowtime(self) -> Expression:
        return Expression(ast.Field(self.node, "$rowtime"))
