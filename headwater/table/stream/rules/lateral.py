"""LATERAL queries that refer to the left side become joins by what they compare."""

from __future__ import annotations

from dataclasses import replace

from headwater.common.errors import SqlError
from headwater.table.plan.calls import call
from headwater.table.plan.expressions import TRUE, Column, Literal, Rex, ref
from headwater.table.plan.nodes import Filter, Join, Plan, Project
from headwater.table.stream.planner_ranks import conjunction
from headwater.table.stream.rules.decorrelate import decorrelate
from headwater.table.stream.rules.subquery_values import gives_one_row, marked, of_nothing


def lateral(plan: Plan) -> Plan:
    """Replace every lateral join of a plan."""
    return plan.rewrite(_replaced)


def _replaced(plan: Plan) -> Plan:
    if not isinstance(plan, Join) or not plan.lateral:
        return plan
    own = [] if plan.condition is None or plan.condition == TRUE else [plan.condition]
    outer = frozenset(column.id for column in plan.left.columns)
    right, pulled = decorrelate(plan.right, outer)
    if gives_one_row(plan.right) and pulled:
        return _one_row(plan, right, pulled, own)
    kind = "INNER" if plan.kind == "CROSS" else plan.kind
    columns = plan.columns
    known = {column.id for column in columns}
    added = [column for column in right.columns if column.id not in known]
    if kind == "LEFT":
        added = [replace(column, type=column.type.with_nullable(True)) for column in added]
    condition = conjunction([*pulled, *own]) if pulled or own else None
    joined = Join(plan.left, right, "CROSS" if condition is None else kind, condition, False, (*columns, *added))
    return Project(joined, tuple((column, ref(column)) for column in columns)) if added else joined


def _one_row(plan: Join, right: Plan, pulled: list[Rex], own: list[Rex]) -> Plan:
    """A global aggregate gives a row of nothing, too: a left join, and what the aggregates are of nothing."""
    if own and plan.kind == "LEFT":
        raise SqlError("LEFT JOIN LATERAL of an aggregate has ON TRUE on streams; put the condition into the query")
    right, marker = marked(right)
    nullable = tuple(replace(column, type=column.type.with_nullable(True)) for column in right.columns)
    joined = Join(plan.left, right, "LEFT", conjunction(pulled), False, (*plan.left.columns, *nullable))
    missing = call("IS NULL", (ref(nullable[marker]),))
    items: list[tuple[Column, Rex]] = [(column, ref(column)) for column in plan.left.columns]
    by_id = {column.id: column for column in nullable}
    for column in plan.columns[len(plan.left.columns) :]:
        found = by_id[column.id]
        default = of_nothing(Project(plan.right, ((column, ref(column)),)))
        plain = isinstance(default, Literal) and default.value is None
        items.append((column, ref(found) if plain else call("CASE", (missing, default, ref(found)))))
    made = Project(joined, tuple(items))
    return Filter(made, conjunction(own)) if own else made
