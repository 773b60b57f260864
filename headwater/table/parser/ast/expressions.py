"""Expressions of SQL."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.table.parser.ast.base import DataType, Expression, Node, Query, Relation


@dataclass(frozen=True)
class Name(Expression):
    """`a`, `t.a`, `t.a.f`: a column, a field of it, or (in a statement) an object of a catalog."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Star(Expression):
    """`*` or `t.*`."""

    qualifier: tuple[str, ...] = ()


@dataclass(frozen=True)
class Number(Expression):
    """A number as it was written: without point or exponent an integer, with a point a decimal, else a double."""

    text: str


@dataclass(frozen=True)
class Text(Expression):
    value: str


@dataclass(frozen=True)
class Binary(Expression):
    """X'0A': hexadecimal digits in upper case."""

    digits: str


@dataclass(frozen=True)
class Boolean(Expression):
    value: bool


@dataclass(frozen=True)
class Null(Expression):
    pass


@dataclass(frozen=True)
class Temporal(Expression):
    """DATE '…', TIME '…', TIMESTAMP '…'."""

    kind: str
    text: str


@dataclass(frozen=True)
class Interval(Expression):
    """INTERVAL '1:30' HOUR TO MINUTE. Units are singular and in upper case."""

    text: str
    unit: str
    until: str | None = None
    precision: int | None = None
    until_precision: int | None = None
    negative: bool = False


@dataclass(frozen=True)
class Symbol(Expression):
    """A word among the arguments of a function: the unit in `FLOOR(t TO HOUR)`, LEADING in TRIM."""

    word: str


@dataclass(frozen=True)
class Unary(Expression):
    """`NOT a`, `- a`, `+ a`."""

    operator: str
    operand: Expression


@dataclass(frozen=True)
class Operation(Expression):
    """`left operator right`; the operator is a sign, AND, OR, or OVERLAPS and its kin."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Between(Expression):
    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False
    symmetric: bool = False


@dataclass(frozen=True)
class Like(Expression):
    """`operator` is LIKE or SIMILAR TO."""

    operator: str
    operand: Expression
    pattern: Expression
    escape: Expression | None = None
    negated: bool = False


@dataclass(frozen=True)
class Is(Expression):
    """`a IS [NOT] NULL / TRUE / FALSE / UNKNOWN / JSON …`."""

    operand: Expression
    test: str
    negated: bool = False


@dataclass(frozen=True)
class IsDistinct(Expression):
    left: Expression
    right: Expression
    negated: bool = False


@dataclass(frozen=True)
class InList(Expression):
    operand: Expression
    values: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True)
class InQuery(Expression):
    operand: Expression
    query: Query
    negated: bool = False


@dataclass(frozen=True)
class Quantified(Expression):
    """`a < ANY (SELECT …)`; the quantifier is ANY or ALL."""

    operator: str
    operand: Expression
    quantifier: str
    query: Query


@dataclass(frozen=True)
class Exists(Expression):
    query: Query


@dataclass(frozen=True)
class Subquery(Expression):
    """A query of one row and one column, as a value."""

    query: Query


@dataclass(frozen=True)
class When(Node):
    condition: Expression
    result: Expression


@dataclass(frozen=True)
class Case(Expression):
    operand: Expression | None
    whens: tuple[When, ...]
    otherwise: Expression | None = None


@dataclass(frozen=True)
class Cast(Expression):
    operand: Expression
    type: DataType
    safe: bool = False
    """TRY_CAST: NULL instead of an error."""


@dataclass(frozen=True)
class SortItem(Node):
    expression: Expression
    descending: bool = False
    nulls_first: bool | None = None
    """None: as Flink has it, NULL is the smallest value."""


@dataclass(frozen=True)
class FrameBound(Node):
    """`kind` is UNBOUNDED PRECEDING, PRECEDING, CURRENT ROW, FOLLOWING or UNBOUNDED FOLLOWING."""

    kind: str
    offset: Expression | None = None


@dataclass(frozen=True)
class Frame(Node):
    unit: str
    """ROWS or RANGE."""
    start: FrameBound
    end: FrameBound


@dataclass(frozen=True)
class WindowSpec(Node):
    """What follows OVER: the name of a window, or its parts, or both."""

    name: str | None = None
    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[SortItem, ...] = ()
    frame: Frame | None = None


@dataclass(frozen=True)
class Clause(Node):
    """Words that change what a JSON function does: `NULL ON EMPTY`, `RETURNING INT`, `DEFAULT 1 ON ERROR`."""

    words: str
    value: Expression | DataType | None = None


@dataclass(frozen=True)
class Call(Expression):
    """A function with its arguments and all that may follow them."""

    name: tuple[str, ...]
    arguments: tuple[Expression, ...] = ()
    distinct: bool = False
    clauses: tuple[Clause, ...] = ()
    within_group: tuple[SortItem, ...] = ()
    null_treatment: str | None = None
    """RESPECT or IGNORE (NULLS)."""
    filter: Expression | None = None
    over: WindowSpec | None = None
    niladic: bool = False
    """Written without parentheses: CURRENT_DATE."""


@dataclass(frozen=True)
class NamedArgument(Expression):
    """`name => value`."""

    name: str
    value: Expression


@dataclass(frozen=True)
class TableArgument(Expression):
    """`TABLE t PARTITION BY a ORDER BY b`, or a query, as an argument of a table function."""

    relation: Relation
    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[SortItem, ...] = ()


@dataclass(frozen=True)
class Descriptor(Expression):
    """`DESCRIPTOR(a, b)`."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class Default(Expression):
    """DEFAULT as an argument."""


@dataclass(frozen=True)
class ArrayOf(Expression):
    """`ARRAY[a, b]`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class MapOf(Expression):
    """`MAP[k, v, k, v]`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class RowOf(Expression):
    """`ROW(a, b)` or `(a, b)`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Item(Expression):
    """`a[i]` of an array or a map."""

    operand: Expression
    index: Expression


@dataclass(frozen=True)
class Field(Expression):
    """`(a).f` or `f(x).name`: a field of a row that is no plain column."""

    operand: Expression
    name: str
