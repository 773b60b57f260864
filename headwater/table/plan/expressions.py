"""Typed expressions of a plan. Columns are referred to by id, so that no name is ever ambiguous."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headwater.table.functions.definition import Binding
from headwater.table.parser.tokens import NOWHERE, Span
from headwater.table.types.logical import BOOLEAN, LogicalType

if TYPE_CHECKING:
    from headwater.table.plan.nodes import Plan


@dataclass(frozen=True)
class Column:
    """A column of a plan. Its id is unique in the whole plan; its name is what people call it."""

    id: int
    name: str = field(compare=False)
    type: LogicalType = field(compare=False)


@dataclass(frozen=True)
class Rex:
    """An expression with a type. `span` is its place in the SQL text; it does not count in a comparison."""

    type: LogicalType = field(compare=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)

    def children(self) -> tuple[Rex, ...]:
        return ()

    def with_children(self, children: tuple[Rex, ...]) -> Rex:
        return self

    def walk(self) -> Iterator[Rex]:
        """This and all that is in it, but not what is in plans of subqueries."""
        yield self
        for child in self.children():
            yield from child.walk()

    def transform(self, change: Callable[[Rex], Rex | None]) -> Rex:
        """Replace, from the top, what `change` has an answer for. What it gives is not looked into again."""
        changed = change(self)
        if changed is not None:
            return changed
        children = self.children()
        new = tuple(child.transform(change) for child in children)
        return (
            self
            if new == children and all(a is b for a, b in zip(new, children, strict=True))
            else (self.with_children(new))
        )


@dataclass(frozen=True)
class ColumnRef(Rex):
    column: Column


def ref(column: Column, span: Span = NOWHERE) -> ColumnRef:
    return ColumnRef(column.type, column, span=span)


@dataclass(frozen=True)
class Literal(Rex):
    """A constant: int, Decimal, float, str, bool, bytes, date, time, naive datetime, months (int), timedelta, None."""

    value: Any

    def __eq__(self, other: object) -> bool:
        """1 and TRUE, 1 and 1.0 are different constants."""
        if not isinstance(other, Literal):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value and self.type.same_kind(other.type)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@dataclass(frozen=True)
class TypeWord(Rex):
    """The type in CAST(x AS type); a literal to functions."""

    target: LogicalType


@dataclass(frozen=True)
class FunctionCall(Rex):
    binding: Binding = field(compare=False)
    name: str
    arguments: tuple[Rex, ...]

    def children(self) -> tuple[Rex, ...]:
        return self.arguments

    def with_children(self, children: tuple[Rex, ...]) -> Rex:
        return replace(self, arguments=children)


@dataclass(frozen=True)
class Required(Rex):
    """A value that must not be NULL where it goes: the query fails with `text` if it is."""

    operand: Rex
    text: str

    def children(self) -> tuple[Rex, ...]:
        return (self.operand,)

    def with_children(self, children: tuple[Rex, ...]) -> Rex:
        return replace(self, operand=children[0])


@dataclass(frozen=True)
class SortKey:
    expression: Rex
    descending: bool = False
    nulls_first: bool = True
    """NULL is the smallest value: first when ascending, last when descending, unless it is said otherwise."""


@dataclass(frozen=True)
class AggregateCall(Rex):
    """A call of an aggregate. Stands in select items while they are bound, and then in an Aggregate."""

    binding: Binding = field(compare=False)
    name: str
    arguments: tuple[Rex, ...]
    distinct: bool = False
    filter: Rex | None = None
    order_by: tuple[SortKey, ...] = ()

    def children(self) -> tuple[Rex, ...]:
        return (*self.arguments, *(() if self.filter is None else (self.filter,)))

    def with_children(self, children: tuple[Rex, ...]) -> Rex:
        count = len(self.arguments)
        return replace(self, arguments=children[:count], filter=children[count] if self.filter is not None else None)


@dataclass(frozen=True)
class Grouping(Rex):
    """GROUPING(a, b) or GROUPING_ID: a bit for each expression that is not grouped by in this row's grouping set."""

    arguments: tuple[Rex, ...]

    def children(self) -> tuple[Rex, ...]:
        return self.arguments

    def with_children(self, children: tuple[Rex, ...]) -> Rex:
        return replace(self, arguments=children)


@dataclass(frozen=True)
class FrameBound:
    """`offset` is None for CURRENT ROW and without a limit; negative is before the row."""

    kind: str
    """UNBOUNDED PRECEDING, PRECEDING, CURRENT ROW, FOLLOWING, UNBOUNDED FOLLOWING."""
    offset: Literal | None = None


@dataclass(frozen=True)
class Frame:
    unit: str
    start: FrameBound
    end: FrameBound


@dataclass(frozen=True)
class WindowCall(Rex):
    """A call with OVER."""

    call: AggregateCall
    partition_by: tuple[Rex, ...]
    order_by: tuple[SortKey, ...]
    frame: Frame | None = None

    def children(self) -> tuple[Rex, ...]:
        keys = tuple(key.expression for key in self.order_by)
        return (*self.call.children(), *self.partition_by, *keys)

    def with_children(self, children: tuple[Rex, ...]) -> Rex:
        inner, partitions = len(self.call.children()), len(self.partition_by)
        call = self.call.with_children(children[:inner])
        assert isinstance(call, AggregateCall)
        keys = zip(self.order_by, children[inner + partitions :], strict=True)
        return replace(
            self,
            call=call,
            partition_by=children[inner : inner + partitions],
            order_by=tuple(replace(key, expression=expression) for key, expression in keys),
        )


@dataclass(frozen=True)
class SubqueryRex(Rex):
    """A query as a value. Columns of queries around it are referred to by their ids."""

    plan: Plan


@dataclass(frozen=True)
class ScalarSubquery(SubqueryRex):
    """The one value of a query of at most one row."""


@dataclass(frozen=True)
class ExistsSubquery(SubqueryRex):
    negated: bool = False


@dataclass(frozen=True)
class InSubquery(SubqueryRex):
    """`(operands) [NOT] IN (query)`, and `= ANY`."""

    operands: tuple[Rex, ...] = ()
    negated: bool = False

    def children(self) -> tuple[Rex, ...]:
        return self.operands

    def with_children(self, children: tuple[Rex, ...]) -> Rex:
        return replace(self, operands=children)


TRUE = Literal(BOOLEAN.not_null(), True)
