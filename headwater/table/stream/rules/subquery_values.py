"""Subqueries as values: the plan that an expression is computed on is left joined with what they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.table.plan.calls import aggregate, call, find_function
from headwater.table.plan.context import new_column
from headwater.table.plan.expressions import (
    TRUE,
    AggregateCall,
    Column,
    ColumnRef,
    ExistsSubquery,
    InSubquery,
    Literal,
    Rex,
    ScalarSubquery,
    ref,
)
from headwater.table.plan.nodes import Aggregate, Filter, Join, Plan, Project, Sort, Values
from headwater.table.plan.renumber import renumbered
from headwater.table.stream.planner_ranks import conjunction
from headwater.table.stream.rules.decorrelate import Outer, decorrelate, grouped
from headwater.table.stream.rules.subquery_single_value import SINGLE_VALUE
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import BOOLEAN


def gives_one_row(plan: Plan) -> bool:
    """Whether a query is a global aggregate: it gives one row, whatever there is."""
    while isinstance(plan, Project):
        plan = plan.input
    return isinstance(plan, Aggregate) and not plan.groups and plan.sets is None


class ValueJoins:
    """Replaces subqueries in expressions over `plan` by columns. `plan` grows by a left join for each."""

    def __init__(self, plan: Plan, prepare: Callable[[Plan], Plan]) -> None:
        self.plan = plan
        self._prepare = prepare
        self._outer: Outer = frozenset(column.id for column in plan.columns)

    def replace(self, rex: Rex) -> Rex:
        return rex.transform(self._value)

    def _value(self, rex: Rex) -> Rex | None:
        return self._scalar(self._prepare(rex.plan)) if isinstance(rex, ScalarSubquery) else self.predicate(rex)

    def predicate(self, rex: Rex) -> Rex | None:
        """As a step of `Rex.transform`: what EXISTS or IN gives; None for all else."""
        match rex:
            case ExistsSubquery():
                found = self._exists(self._prepare(rex.plan))
                return call("NOT", (found,)) if rex.negated else found
            case InSubquery():
                operands = [self.replace(each) for each in rex.operands]
                found = self._in(operands, self._prepare(rex.plan))
                return call("NOT", (found,)) if rex.negated else found
        return None

    def _left_join(self, right: Plan, conditions: Sequence[Rex]) -> tuple[Column, ...]:
        """Join one more plan. Return its columns, which are nullable now."""
        columns = tuple(replace(column, type=column.type.with_nullable(True)) for column in right.columns)
        condition = conjunction(conditions) if conditions else TRUE
        self.plan = Join(self.plan, right, "LEFT", condition, False, (*self.plan.columns, *columns))
        return columns

    # -- Kinds of subqueries

    def _scalar(self, query: Plan) -> Rex:
        default = of_nothing(query) if gives_one_row(query) else None
        query, conditions = decorrelate(query, self._outer)
        if default is None and not _one_row_at_most(query):
            groups, conditions = grouped(conditions, self._outer)
            call_ = aggregate(SINGLE_VALUE, [ref(query.columns[0])])
            value = new_column(query.columns[0].name, call_.type)
            query = Aggregate(query, tuple(groups), ((value, call_),))
            return ref(self._left_join(query, conditions)[-1])
        if default is None or not conditions or (isinstance(default, Literal) and default.value is None):
            return ref(self._left_join(query, conditions)[0])
        query, marker = marked(query)
        columns = self._left_join(query, conditions)
        missing = call("IS NULL", (ref(columns[marker]),))
        return call("CASE", (missing, default, ref(columns[0])))

    def _exists(self, query: Plan) -> Rex:
        if gives_one_row(query):
            return TRUE
        query, conditions = decorrelate(query, self._outer)
        groups, conditions = grouped(conditions, self._outer)
        if not groups:
            counted, count = _counted(query, (), [_count(())])
            columns = self._left_join(counted, conditions)
            found = call(">", (ref(columns[count]), Literal(counted.columns[count].type, 0)))
            return call("IS TRUE", (found,))
        query, marker = marked(Aggregate(query, tuple(groups), ()))
        return call("IS NOT NULL", (ref(self._left_join(query, conditions)[marker]),))

    def _in(self, operands: Sequence[Rex], query: Plan) -> Rex:
        """Three-valued: TRUE if a row is equal, else NULL if that is not known of one, else FALSE."""
        pairs = list(zip(operands, query.columns, strict=True))
        nullable = any(x.type.nullable or y.type.nullable for x, y in pairs)
        if nullable and len(pairs) > 1:
            raise SqlError("IN of several columns that may be NULL stands only in WHERE and AND on streams")
        width = len(query.columns)
        if gives_one_row(query):
            scalar = ScalarSubquery(query.columns[0].type.with_nullable(True), query)
            return call("=", (operands[0], self.replace(scalar)))
        distinct, conditions = decorrelate(query, self._outer)
        groups, conditions = grouped(conditions, self._outer)
        values = [(new_column(y.name, y.type), ref(y)) for y in distinct.columns[:width]]
        once, marker = marked(Aggregate(distinct, (*values, *groups), ()))
        equal = [call("=", (x, ref(column))) for x, (column, _) in zip(operands, values, strict=True)]
        columns = self._left_join(once, [*equal, *conditions])
        matches = call("IS NOT NULL", (ref(columns[marker]),))
        if not nullable:
            return matches
        rows, conditions = decorrelate(renumbered(query, self._outer), self._outer)
        groups, conditions = grouped(conditions, self._outer)
        counted, place = _counted(rows, groups, [_count(()), _count((ref(rows.columns[0]),))])
        columns = self._left_join(counted, conditions)
        everything, known = (
            call("COALESCE", (ref(columns[at]), Literal(counted.columns[at].type, 0))) for at in (place, place + 1)
        )
        nothing = Literal(BOOLEAN, None)
        false = Literal(BOOLEAN.not_null(), False)
        empty = call("=", (everything, Literal(everything.type.not_null(), 0)))
        unknown = call("OR", (call("IS NULL", (operands[0],)), call("<", (known, everything))))
        return call("CASE", (matches, TRUE, empty, false, unknown, nothing, false))


def _one_row_at_most(plan: Plan) -> bool:
    while isinstance(plan, Project | Filter):
        plan = plan.input
    match plan:
        case Aggregate():
            return not plan.groups and plan.sets is None
        case Values():
            return len(plan.rows) <= 1
        case Sort():
            return plan.limit is not None and plan.limit <= 1
    return False


def marked(plan: Plan) -> tuple[Plan, int]:
    """The plan with a column that is never NULL behind its own; its place."""
    marker = new_column("$found", TRUE.type)
    items = tuple((column, ref(column)) for column in plan.columns)
    return Project(plan, (*items, (marker, TRUE))), len(items)


def _count(arguments: Sequence[Rex]) -> AggregateCall:
    return aggregate(find_function("COUNT"), arguments)


def _counted(plan: Plan, groups: Sequence[tuple[Column, Rex]], calls: Sequence[AggregateCall]) -> tuple[Plan, int]:
    """An aggregate, and the place of its first call."""
    columns = tuple((new_column(f"$n{place}", each.type), each) for place, each in enumerate(calls))
    return Aggregate(plan, tuple(groups), columns), len(groups)


def of_nothing(plan: Plan) -> Rex:
    """What a global aggregate gives of no rows, in its first column."""
    above: list[Project] = []
    first = plan.columns[0].id
    while isinstance(plan, Project):
        above.append(plan)
        plan = plan.input
    assert isinstance(plan, Aggregate)
    values: dict[int, Rex] = {column.id: _empty(column, each) for column, each in plan.calls}
    for project in reversed(above):
        values = {column.id: _substituted(rex, values) for column, rex in project.items}
    return values[first]


def _empty(column: Column, of: Rex) -> Rex:
    if not isinstance(of, AggregateCall) or of.binding.function.recipe is None:
        return Literal(column.type.with_nullable(True), None)
    arrays = [pa.array([], to_arrow(each)) for each in of.binding.arg_types]
    value = of.binding.function.recipe.gather(arrays, np.zeros(2, np.int64), of.binding)[0].as_py()
    return Literal(column.type.with_nullable(value is None), None if isinstance(value, list) else value)


def _substituted(rex: Rex, values: dict[int, Rex]) -> Rex:
    return rex.transform(lambda node: values.get(node.column.id) if isinstance(node, ColumnRef) else None)
