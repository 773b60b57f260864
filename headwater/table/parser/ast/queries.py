"""Queries and the relations they read."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.table.parser.ast.base import Expression, Node, Query, Relation
from headwater.table.parser.ast.expressions import Call, SortItem, WindowSpec


@dataclass(frozen=True)
class Hint(Node):
    """One of `/*+ STATE_TTL('a' = '1d'), BROADCAST(t) */`: options in order, plain arguments with an empty value."""

    name: str
    arguments: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True)
class SelectItem(Node):
    expression: Expression
    alias: str | None = None


@dataclass(frozen=True)
class GroupingSets(Expression):
    """GROUPING SETS, ROLLUP or CUBE. Each set is a tuple of expressions; ROLLUP and CUBE have theirs as written."""

    kind: str
    sets: tuple[tuple[Expression, ...] | GroupingSets, ...]


@dataclass(frozen=True)
class NamedWindow(Node):
    name: str
    window: WindowSpec


@dataclass(frozen=True)
class Select(Query):
    items: tuple[SelectItem, ...]
    relation: Relation | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] | None = None
    """None without GROUP BY; `GROUP BY ()` is empty."""
    having: Expression | None = None
    windows: tuple[NamedWindow, ...] = ()
    qualify: Expression | None = None
    distinct: bool = False
    hints: tuple[Hint, ...] = ()


@dataclass(frozen=True)
class Values(Query):
    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True)
class TableQuery(Query):
    """`TABLE t`: all of a table."""

    name: tuple[str, ...]


@dataclass(frozen=True)
class SetOperation(Query):
    """UNION, INTERSECT or EXCEPT (MINUS is EXCEPT)."""

    operator: str
    left: Query
    right: Query
    all: bool = False


@dataclass(frozen=True)
class Ordered(Query):
    """A query with ORDER BY, OFFSET or LIMIT."""

    query: Query
    order_by: tuple[SortItem, ...] = ()
    offset: Expression | None = None
    limit: Expression | None = None


@dataclass(frozen=True)
class CommonTable(Node):
    """`name (columns) AS (query)` of WITH."""

    name: str
    query: Query
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class With(Query):
    tables: tuple[CommonTable, ...]
    query: Query


@dataclass(frozen=True)
class TableName(Relation):
    name: tuple[str, ...]
    hints: tuple[Hint, ...] = ()


@dataclass(frozen=True)
class Derived(Relation):
    """A query in parentheses; LATERAL: it may use columns of the relations before it."""

    query: Query
    lateral: bool = False


@dataclass(frozen=True)
class TableFunction(Relation):
    """`TABLE(f(…))`, `LATERAL TABLE(f(…))` or just `f(…)` in FROM."""

    call: Call
    lateral: bool = False


@dataclass(frozen=True)
class Unnest(Relation):
    expressions: tuple[Expression, ...]
    ordinality: bool = False


@dataclass(frozen=True)
class Aliased(Relation):
    relation: Relation
    alias: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Snapshot(Relation):
    """`t FOR SYSTEM_TIME AS OF period`."""

    relation: Relation
    period: Expression


@dataclass(frozen=True)
class Join(Relation):
    """`kind` is INNER, LEFT, RIGHT, FULL or CROSS; `comma`: it was written as one."""

    kind: str
    left: Relation
    right: Relation
    condition: Expression | None = None
    using: tuple[str, ...] = ()
    natural: bool = False
    comma: bool = False


@dataclass(frozen=True)
class Pattern(Node):
    """Part of a row pattern."""


@dataclass(frozen=True)
class PatternVariable(Pattern):
    name: str


@dataclass(frozen=True)
class PatternSequence(Pattern):
    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class PatternChoice(Pattern):
    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class PatternRepeat(Pattern):
    """`most` is None without a limit."""

    part: Pattern
    least: int
    most: int | None
    reluctant: bool = False


@dataclass(frozen=True)
class PatternExclusion(Pattern):
    """`{- a -}`: matched, and not in the output."""

    part: Pattern


@dataclass(frozen=True)
class PatternPermute(Pattern):
    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Measure(Node):
    expression: Expression
    alias: str


@dataclass(frozen=True)
class Definition(Node):
    """`A AS condition` of DEFINE."""

    variable: str
    condition: Expression


@dataclass(frozen=True)
class MatchRecognize(Relation):
    relation: Relation
    pattern: Pattern
    definitions: tuple[Definition, ...]
    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[SortItem, ...] = ()
    measures: tuple[Measure, ...] = ()
    rows_per_match: str | None = None
    """ONE ROW or ALL ROWS (PER MATCH)."""
    after_match: str | None = None
    """SKIP PAST LAST ROW, SKIP TO NEXT ROW, SKIP TO FIRST, SKIP TO LAST."""
    skip_to: str | None = None
    within: Expression | None = None
    subsets: tuple[tuple[str, tuple[str, ...]], ...] = ()
