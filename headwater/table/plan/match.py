"""MATCH_RECOGNIZE in a plan: a pattern of rows, and what is told of each match."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.operators.cep.steps import PatternSteps
from headwater.table.plan.expressions import AggregateCall, Column, Rex, SortKey
from headwater.table.plan.nodes import Unary


@dataclass(frozen=True)
class MatchValue:
    """A value from rows of a match. Expressions refer to it as `column`.

    In DEFINE the row in question counts as a row of the variable that is defined.
    """

    column: Column
    variable: str | None
    """None: all rows of the match."""
    which: str
    """FIRST, LAST or ALL: the row at `offset` from that end, or an aggregate of all of them. TIME: when the match is
    handed out, which is later than its last row if it waited for another one."""
    offset: int = 0
    source: Column | None = None
    """Of FIRST and LAST: the input's column. NULL if there is no such row. Of TIME: the time column."""
    call: AggregateCall | None = None
    """Of ALL: the aggregate, over the input's columns."""


@dataclass(frozen=True)
class MatchDefinition:
    """What a row must be to be taken for `variable`."""

    variable: str
    condition: Rex
    values: tuple[MatchValue, ...]


@dataclass(frozen=True)
class Match(Unary):
    """One row for each match of a pattern among the rows of a partition, in the order of time."""

    partition_by: tuple[Column, ...]
    order_by: tuple[SortKey, ...]
    """The first is the time column, ascending. All are columns of the input."""
    pattern: PatternSteps
    """Its steps are the variables. They have no conditions: these are in `definitions`."""
    definitions: tuple[MatchDefinition, ...]
    values: tuple[MatchValue, ...]
    """What the measures refer to."""
    measures: tuple[tuple[Column, Rex], ...]
    rowtime: Column | None = None
    """The measure that is MATCH_ROWTIME() itself: the time column of the output."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.partition_by, *(column for column, _ in self.measures))

    def rexes(self) -> tuple[Rex, ...]:
        return tuple(rex for _, rex in self.measures)
