"""Nodes of a logical plan: what is computed, not how. Every node knows its columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headwater.table.catalog.objects import CatalogTable, Identifier
from headwater.table.plan.expressions import AggregateCall, Column, Grouping, Rex, SortKey, WindowCall


@dataclass(frozen=True)
class Plan:
    """A node. `columns` are what it gives, in order."""

    @property
    def columns(self) -> tuple[Column, ...]:
        raise NotImplementedError

    def inputs(self) -> tuple[Plan, ...]:
        return ()

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Plan:
        return self

    def rexes(self) -> tuple[Rex, ...]:
        """The expressions of this node."""
        return ()

    def rewrite(self, change: Callable[[Plan], Plan]) -> Plan:
        """Apply `change` to every node, from the leaves up."""
        inputs = tuple(each.rewrite(change) for each in self.inputs())
        same = all(a is b for a, b in zip(inputs, self.inputs(), strict=True))
        return change(self if same else self.with_inputs(inputs))


@dataclass(frozen=True)
class Scan(Plan):
    """All rows of a table, physical and metadata columns only."""

    identifier: Identifier
    table: CatalogTable
    given: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.given


@dataclass(frozen=True)
class Values(Plan):
    rows: tuple[tuple[Rex, ...], ...]
    given: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.given

    def rexes(self) -> tuple[Rex, ...]:
        return tuple(value for row in self.rows for value in row)


@dataclass(frozen=True)
class Unary(Plan):
    input: Plan

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns

    def inputs(self) -> tuple[Plan, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Plan:
        return replace(self, input=inputs[0])


@dataclass(frozen=True)
class Watermark(Unary):
    """The input, whose column `time` is its event time. `expression` says up to where no more rows are expected.

    It means nothing to a batch.
    """

    time: Column
    expression: Rex

    def rexes(self) -> tuple[Rex, ...]:
        return (self.expression,)


@dataclass(frozen=True)
class LookupRetry:
    """A key without rows is asked for again: `delay_ms` later, at most `attempts` times."""

    delay_ms: int
    attempts: int


@dataclass(frozen=True)
class Snapshot(Unary):
    """`table FOR SYSTEM_TIME AS OF period`: the right side of a join, as it was (or is) at a time of the left side."""

    period: Rex
    retry: LookupRetry | None = None
    asked: bool = False
    """The hint LOOKUP names it: it must be a table that is looked up."""

    def rexes(self) -> tuple[Rex, ...]:
        return (self.period,)


@dataclass(frozen=True)
class Project(Unary):
    items: tuple[tuple[Column, Rex], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in self.items)

    def rexes(self) -> tuple[Rex, ...]:
        return tuple(rex for _, rex in self.items)


@dataclass(frozen=True)
class Filter(Unary):
    condition: Rex

    def rexes(self) -> tuple[Rex, ...]:
        return (self.condition,)


@dataclass(frozen=True)
class Aggregate(Unary):
    """Groups, and aggregates of each. `sets`: for each grouping set, which of the groups it has (by place)."""

    groups: tuple[tuple[Column, Rex], ...]
    calls: tuple[tuple[Column, AggregateCall | Grouping], ...]
    sets: tuple[tuple[int, ...], ...] | None = None
    ttl_ms: int | None = None
    """How long a group is kept: the hint STATE_TTL. None: as the session says."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in (*self.groups, *self.calls))

    def rexes(self) -> tuple[Rex, ...]:
        return tuple(rex for _, rex in (*self.groups, *self.calls))


@dataclass(frozen=True)
class Over(Unary):
    """The input's columns, and those of functions over windows of its rows."""

    calls: tuple[tuple[Column, WindowCall], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, *(column for column, _ in self.calls))

    def rexes(self) -> tuple[Rex, ...]:
        return tuple(call for _, call in self.calls)


@dataclass(frozen=True)
class WindowTable(Unary):
    """A windowing table function: TUMBLE, HOP, CUMULATE, SESSION. Lengths are in milliseconds."""

    kind: str
    time: Column
    size_ms: int
    """Of SESSION: the gap."""
    step_ms: int = 0
    """Of HOP the slide, of CUMULATE the step."""
    offset_ms: int = 0
    partition_by: tuple[Column, ...] = ()
    added: tuple[Column, ...] = ()
    """window_start, window_end, window_time."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, *self.added)


@dataclass(frozen=True)
class Unnest(Unary):
    """Each row of the input with each element of a collection. `outer`: with NULLs if there is none."""

    collection: Rex
    added: tuple[Column, ...]
    kind: str
    """ARRAY (one column), ROWS (an array of rows: a column per field), MAP (key, value), MULTISET."""
    ordinality: bool = False
    outer: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, *self.added)

    def rexes(self) -> tuple[Rex, ...]:
        return (self.collection,)


@dataclass(frozen=True)
class Sort(Unary):
    keys: tuple[SortKey, ...] = ()
    offset: int | None = None
    limit: int | None = None

    def rexes(self) -> tuple[Rex, ...]:
        return tuple(key.expression for key in self.keys)


@dataclass(frozen=True)
class Binary(Plan):
    left: Plan
    right: Plan

    def inputs(self) -> tuple[Plan, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Plan:
        return replace(self, left=inputs[0], right=inputs[1])


@dataclass(frozen=True)
class Join(Binary):
    """`kind` is INNER, LEFT, RIGHT, FULL or CROSS. `lateral`: the right side refers to columns of the left one."""

    kind: str
    condition: Rex | None = None
    lateral: bool = False
    nullable: tuple[Column, ...] = ()
    """All columns, as nullable as an outer join makes them. They have the ids of the inputs' columns."""
    ttl_ms: tuple[int | None, int | None] | None = None
    """How long each side is kept: the hint STATE_TTL. None: as the session says."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.nullable or (*self.left.columns, *self.right.columns)

    def rexes(self) -> tuple[Rex, ...]:
        return () if self.condition is None else (self.condition,)


@dataclass(frozen=True)
class SetOperation(Binary):
    """UNION, INTERSECT or EXCEPT of inputs that have the same types."""

    operator: str
    all: bool
    given: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.given


@dataclass(frozen=True)
class Sink(Unary):
    """The rows go into a table. The input has exactly its persisted columns, in order."""

    identifier: Identifier
    table: CatalogTable
    overwrite: bool = False
