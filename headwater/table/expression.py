"""Expressions of the Table API: the syntax tree of SQL, built by Python operators and methods."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

from headwater.common.errors import SqlError
from headwater.table.parser.ast import expressions as ast
from headwater.table.parser.ast import queries
from headwater.table.parser.ast.base import DataType
from headwater.table.parser.ast.base import Expression as Node
from headwater.table.parser.parse import parse_type
from headwater.table.parser.printing.queries import print_expression
from headwater.table.plan.given import Given
from headwater.table.types.logical import LogicalType


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


class Expression:
    """A value that is computed for each row. `col("a") + 1`, `col("s").upper_case`, `lit(1).alias("one")`."""

    def __init__(self, node: Node, name: str | None = None, order: ast.SortItem | None = None) -> None:
        self.node = node
        self.name = name
        """The alias, if there is one."""
        self.order = order
        """How `order_by` sorts by it, if `.asc` or `.desc` said so."""

    def __repr__(self) -> str:
        return print_expression(self.node)

    def __bool__(self) -> bool:
        raise SqlError("an Expression is neither true nor false: use & | ~ instead of and, or, not")

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
        if extra_names:
            raise SqlError("alias() takes one name: a column has one")
        return Expression(self.node, name)

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

    def like(self, pattern: Any) -> Expression:
        return Expression(ast.Like("LIKE", self.node, node_of(pattern)))

    def similar(self, pattern: Any) -> Expression:
        return Expression(ast.Like("SIMILAR TO", self.node, node_of(pattern)))

    def then(self, if_true: Any, if_false: Any) -> Expression:
        """This condition decides between two values."""
        return Expression(ast.Case(None, (ast.When(self.node, node_of(if_true)),), node_of(if_false)))

    def if_null(self, null_replacement: Any) -> Expression:
        return self._call("COALESCE", null_replacement)

    # -- Aggregates

    @property
    def sum(self) -> Expression:
        return self._call("SUM")

    @property
    def count(self) -> Expression:
        return self._call("COUNT")

    @property
    def avg(self) -> Expression:
        return self._call("AVG")

    @property
    def min(self) -> Expression:
        return self._call("MIN")

    @property
    def max(self) -> Expression:
        return self._call("MAX")

    @property
    def stddev_pop(self) -> Expression:
        return self._call("STDDEV_POP")

    @property
    def stddev_samp(self) -> Expression:
        return self._call("STDDEV_SAMP")

    @property
    def var_pop(self) -> Expression:
        return self._call("VAR_POP")

    @property
    def var_samp(self) -> Expression:
        return self._call("VAR_SAMP")

    @property
    def collect(self) -> Expression:
        return self._call("COLLECT")

    @property
    def first_value(self) -> Expression:
        return self._call("FIRST_VALUE")

    @property
    def last_value(self) -> Expression:
        return self._call("LAST_VALUE")

    def list_agg(self, separator: str = ",") -> Expression:
        return self._call("LISTAGG", separator)

    @property
    def array_agg(self) -> Expression:
        return self._call("ARRAY_AGG")

    @property
    def distinct(self) -> Expression:
        """This aggregate over different values only: `col("a").count.distinct`."""
        if not isinstance(self.node, ast.Call):
            raise SqlError("distinct belongs to an aggregate: col('a').count.distinct")
        node = self.node
        return Expression(ast.Call(node.name, node.arguments, True))

    # -- Numbers

    @property
    def abs(self) -> Expression:
        return self._call("ABS")

    def floor(self, time_interval_unit: Any = None) -> Expression:
        return self._rounded("FLOOR", time_interval_unit)

    def ceil(self, time_interval_unit: Any = None) -> Expression:
        return self._rounded("CEIL", time_interval_unit)

    def _rounded(self, name: str, unit: Any) -> Expression:
        words = () if unit is None else (ast.Symbol(str(getattr(unit, "name", unit)).upper()),)
        return Expression(ast.Call((name,), (self.node, *words)))

    @property
    def exp(self) -> Expression:
        return self._call("EXP")

    @property
    def ln(self) -> Expression:
        return self._call("LN")

    @property
    def log10(self) -> Expression:
        return self._call("LOG10")

    @property
    def sqrt(self) -> Expression:
        return self._call("SQRT")

    def power(self, exponent: Any) -> Expression:
        return self._call("POWER", exponent)

    def round(self, places: Any = 0) -> Expression:
        return self._call("ROUND", places)

    @property
    def sign(self) -> Expression:
        return self._call("SIGN")

    # -- Strings

    @property
    def upper_case(self) -> Expression:
        return self._call("UPPER")

    @property
    def lower_case(self) -> Expression:
        return self._call("LOWER")

    @property
    def char_length(self) -> Expression:
        return self._call("CHAR_LENGTH")

    def substring(self, begin_index: Any, length: Any = None) -> Expression:
        return self._call("SUBSTRING", begin_index) if length is None else self._call("SUBSTRING", begin_index, length)

    def substr(self, begin_index: Any, length: Any = None) -> Expression:
        return self.substring(begin_index, length)

    def trim(self, character: Any = " ") -> Expression:
        arguments = (ast.Symbol("BOTH"), node_of(character), self.node)
        return Expression(ast.Call(("TRIM",), arguments))

    @property
    def ltrim(self) -> Expression:
        return self._call("LTRIM")

    @property
    def rtrim(self) -> Expression:
        return self._call("RTRIM")

    def replace(self, search: Any, replacement: Any) -> Expression:
        return self._call("REPLACE", search, replacement)

    def regexp_replace(self, regex: Any, replacement: Any) -> Expression:
        return self._call("REGEXP_REPLACE", regex, replacement)

    def regexp_extract(self, regex: Any, extract_index: Any = None) -> Expression:
        return self._call("REGEXP_EXTRACT", regex, *(() if extract_index is None else (extract_index,)))

    def split_index(self, delimiter: Any, index: Any) -> Expression:
        return self._call("SPLIT_INDEX", delimiter, index)

    def position(self, haystack: Any) -> Expression:
        return self._call("POSITION", haystack)

    def lpad(self, length: Any, pad: Any) -> Expression:
        return self._call("LPAD", length, pad)

    def rpad(self, length: Any, pad: Any) -> Expression:
        return self._call("RPAD", length, pad)

    def repeat(self, n: Any) -> Expression:
        return self._call("REPEAT", n)

    @property
    def init_cap(self) -> Expression:
        return self._call("INITCAP")

    @property
    def md5(self) -> Expression:
        return self._call("MD5")

    @property
    def sha256(self) -> Expression:
        return self._call("SHA256")

    # -- Time

    def extract(self, time_interval_unit: Any) -> Expression:
        word = ast.Symbol(str(getattr(time_interval_unit, "name", time_interval_unit)).upper())
        return Expression(ast.Call(("EXTRACT",), (word, self.node)))

    @property
    def to_date(self) -> Expression:
        return Expression(ast.Cast(self.node, DataType("DATE")))

    @property
    def to_timestamp(self) -> Expression:
        return Expression(ast.Cast(self.node, DataType("TIMESTAMP", (3,))))

    def _interval(self, unit: str) -> Expression:
        if not isinstance(self.node, ast.Number):
            raise SqlError(f"{unit.lower()}s is for a constant: lit(10).{unit.lower()}s")
        text = self.node.text
        return Expression(ast.Interval(text.lstrip("-"), unit, negative=text.startswith("-")))

    @property
    def years(self) -> Expression:
        return self._interval("YEAR")

    @property
    def year(self) -> Expression:
        return self._interval("YEAR")

    @property
    def months(self) -> Expression:
        return self._interval("MONTH")

    @property
    def month(self) -> Expression:
        return self._interval("MONTH")

    @property
    def weeks(self) -> Expression:
        return self._interval("WEEK")

    @property
    def week(self) -> Expression:
        return self._interval("WEEK")

    @property
    def days(self) -> Expression:
        return self._interval("DAY")

    @property
    def day(self) -> Expression:
        return self._interval("DAY")

    @property
    def hours(self) -> Expression:
        return self._interval("HOUR")

    @property
    def hour(self) -> Expression:
        return self._interval("HOUR")

    @property
    def minutes(self) -> Expression:
        return self._interval("MINUTE")

    @property
    def minute(self) -> Expression:
        return self._interval("MINUTE")

    @property
    def seconds(self) -> Expression:
        return self._interval("SECOND")

    @property
    def second(self) -> Expression:
        return self._interval("SECOND")

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
    def rowtime(self) -> Expression:
        return Expression(ast.Field(self.node, "$rowtime"))

    # -- Collections

    @property
    def cardinality(self) -> Expression:
        return self._call("CARDINALITY")

    @property
    def element(self) -> Expression:
        return self._call("ELEMENT")
