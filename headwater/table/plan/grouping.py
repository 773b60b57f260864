"""GROUP BY: grouping sets, and what the rest of a SELECT means once rows are grouped."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from headwater.table.parser.ast import queries as ast
from headwater.table.parser.ast.base import Expression
from headwater.table.parser.ast.expressions import RowOf
from headwater.table.plan.context import BindContext, new_column
from headwater.table.plan.expressions import (
    AggregateCall,
    Column,
    ColumnRef,
    Grouping,
    Rex,
    SubqueryRex,
    WindowCall,
    ref,
)
from headwater.table.plan.nodes import Aggregate, Plan


def expand_sets(items: Sequence[Expression]) -> tuple[list[Expression], list[tuple[int, ...]] | None]:
    """All grouping expressions, and for each grouping set which of them it has; None without grouping sets."""
    expressions: list[Expression] = []

    def place(node: Expression) -> int:
        if node not in expressions:
            expressions.append(node)
        return expressions.index(node)

    def sets_of(node: Expression) -> list[tuple[int, ...]]:
        if isinstance(node, RowOf):
            return [tuple(place(item) for item in node.items)]
        if not isinstance(node, ast.GroupingSets):
            return [(place(node),)]
        if node.kind == "GROUPING SETS":
            found: list[tuple[int, ...]] = []
            for each in node.sets:
                found += sets_of(each) if isinstance(each, ast.GroupingSets) else [tuple(map(place, each))]
            return found
        parts = [tuple(map(place, each)) for each in node.sets if not isinstance(each, ast.GroupingSets)]
        if node.kind == "ROLLUP":
            chosen = [parts[:length] for length in range(len(parts), -1, -1)]
        else:
            chosen = [list(c) for size in range(len(parts), -1, -1) for c in itertools.combinations(parts, size)]
        return [tuple(itertools.chain.from_iterable(each)) for each in chosen]

    several = any(isinstance(node, ast.GroupingSets) for node in items)
    products = itertools.product(*[sets_of(node) for node in items])
    sets = [tuple(dict.fromkeys(itertools.chain.from_iterable(product))) for product in products]
    return expressions, sets if several else None


@dataclass
class Grouped:
    """Collects the aggregates of a SELECT, and rewrites expressions over the input into ones over the groups."""

    context: BindContext
    input: Plan
    groups: list[tuple[Column, Rex]]
    sets: list[tuple[int, ...]] | None
    calls: list[tuple[Column, AggregateCall | Grouping]] = field(default_factory=list)

    @staticmethod
    def group_columns(rexes: Sequence[Rex], sets: list[tuple[int, ...]] | None) -> list[tuple[Column, Rex]]:
        """A column for each group. One that is a plain column keeps its id, so that subqueries find it."""
        found: list[tuple[Column, Rex]] = []
        for place, rex in enumerate(rexes):
            everywhere = sets is None or all(place in each for each in sets)
            type_ = rex.type if everywhere else rex.type.with_nullable(True)
            if isinstance(rex, ColumnRef):
                found.append((replace(rex.column, type=type_), rex))
            else:
                found.append((new_column(f"$g{place}", type_), rex))
        return found

    def rewrite(self, rex: Rex, clause: str) -> Rex:
        """The expression over groups. An input column that is no group is an error at its place."""
        own = {column.id for column in self.input.columns}

        def change(node: Rex) -> Rex | None:
            for column, group in self.groups:
                if node == group:
                    return ref(column, node.span)
            if isinstance(node, AggregateCall | Grouping):
                return self._column_of(node)
            if isinstance(node, WindowCall | SubqueryRex):
                return None
            if isinstance(node, ColumnRef) and node.column.id in own:
                raise self.context.error(
                    f"column '{node.column.name}' in {clause} is neither grouped by nor in an aggregate;"
                    f" add it to GROUP BY, or use an aggregate such as MAX({node.column.name})",
                    node.span,
                )
            return None

        return self._window_safe(rex, change)

    def _window_safe(self, rex: Rex, change: object) -> Rex:
        """A WindowCall's own call is no aggregate of the groups; its arguments are."""

        def outer(node: Rex) -> Rex | None:
            if isinstance(node, WindowCall):
                children = tuple(child.transform(outer) for child in node.children())
                return node.with_children(children)
            return change(node)  # type: ignore[operator, no-any-return]

        return rex.transform(outer)

    def _column_of(self, node: AggregateCall | Grouping) -> Rex:
        if isinstance(node, Grouping):
            known = [group for _, group in self.groups]
            for argument in node.arguments:
                if argument not in known:
                    raise self.context.error("GROUPING takes expressions of GROUP BY", argument.span)
        for column, call in self.calls:
            if call == node:
                return ref(column, node.span)
        column = new_column(f"$a{len(self.calls)}", node.type)
        self.calls.append((column, node))
        return ref(column, node.span)

    def plan(self) -> Aggregate:
        sets = None if self.sets is None else tuple(self.sets)
        return Aggregate(self.input, tuple(self.groups), tuple(self.calls), sets)


def has_aggregate(rex: Rex) -> bool:
    """Whether there is an aggregate in it that is not under OVER."""
    if isinstance(rex, AggregateCall | Grouping):
        return True
    return any(has_aggregate(child) for child in rex.children())


def has_window(rex: Rex) -> bool:
    return any(isinstance(node, WindowCall) for node in rex.walk())
