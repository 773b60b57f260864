"""Filters go down as far as they mean the same: fewer rows travel, and conditions of WHERE become those of joins."""

from __future__ import annotations

from dataclasses import replace

from headwater.table.plan.expressions import Column, ColumnRef, FunctionCall, Rex, SubqueryRex
from headwater.table.plan.nodes import Aggregate, Filter, Join, Over, Plan, Project, Snapshot, Sort, Watermark
from headwater.table.stream.planner_ranks import conjunction, conjuncts


def push_filters(plan: Plan) -> Plan:
    """Move every filter down."""
    if isinstance(plan, Filter):
        return _push(plan.input, conjuncts(plan.condition))
    if isinstance(plan, Join) and plan.kind in ("INNER", "CROSS") and not plan.lateral:
        return _into_join(plan, [])
    inputs = tuple(push_filters(each) for each in plan.inputs())
    return plan.with_inputs(inputs) if inputs else plan


def _push(plan: Plan, conditions: list[Rex]) -> Plan:
    """`plan` with these conditions above it, as far down as possible."""
    match plan:
        case Filter():
            return _push(plan.input, [*conjuncts(plan.condition), *conditions])
        case Project():
            items = {column.id: rex for column, rex in plan.items}
            movable = [each for each in conditions if _pure(each) and all(_pure(items[i]) for i in _ids(each))]
            stays = [each for each in conditions if each not in movable]
            below = [_substituted(each, items) for each in movable]
            inner = _push(plan.input, below) if below else push_filters(plan.input)
            return _filtered(replace(plan, input=inner), stays)
        case Join(kind="INNER" | "CROSS" | "LEFT" | "SEMI" | "ANTI") if not plan.lateral:
            return _into_join(plan, conditions)
        case Sort(limit=None, offset=None):
            return replace(plan, input=_push(plan.input, conditions))
        case Aggregate(sets=None) if plan.groups:
            groups = {column.id: rex for column, rex in plan.groups}
            movable = [each for each in conditions if _pure(each) and _ids(each) and _ids(each) <= set(groups)]
            stays = [each for each in conditions if each not in movable]
            below = [_substituted(each, groups) for each in movable]
            inner = _push(plan.input, below) if below else push_filters(plan.input)
            return _filtered(replace(plan, input=inner), stays)
        case Over():
            shared = {
                each.column.id
                for each in plan.calls[0][1].partition_by
                if isinstance(each, ColumnRef) and all(each in window.partition_by for _, window in plan.calls)
            }
            movable = [each for each in conditions if _pure(each) and _ids(each) and _ids(each) <= shared]
            stays = [each for each in conditions if each not in movable]
            inner = _push(plan.input, movable) if movable else push_filters(plan.input)
            return _filtered(replace(plan, input=inner), stays)
        case Watermark():
            pass  # rows that are filtered out move the watermark, too
    return _filtered(push_filters(plan), conditions)


def _into_join(plan: Join, conditions: list[Rex]) -> Plan:
    left, right = ({column.id for column in side.columns} for side in (plan.left, plan.right))
    to_left: list[Rex] = []
    to_right: list[Rex] = []
    condition: list[Rex] = [] if plan.condition is None else conjuncts(plan.condition)
    stays: list[Rex] = []
    inner = plan.kind in ("INNER", "CROSS")
    if inner:
        conditions, condition = [*condition, *conditions], []
    for each in conditions:
        ids = _ids(each)
        if not _pure(each) or not ids:
            stays.append(each)
        elif ids <= left:
            to_left.append(_as_of(each, plan.left.columns))
        elif inner and ids <= right and not isinstance(plan.right, Snapshot):
            to_right.append(_as_of(each, plan.right.columns))
        elif inner:
            condition.append(each)
        else:
            stays.append(each)
    one = _push(plan.left, to_left) if to_left else push_filters(plan.left)
    other = _push(plan.right, to_right) if to_right else push_filters(plan.right)
    kind = "INNER" if plan.kind == "CROSS" and condition else plan.kind
    joined = replace(plan, left=one, right=other, kind=kind, condition=conjunction(condition) if condition else None)
    return _filtered(joined, stays)


def _filtered(plan: Plan, conditions: list[Rex]) -> Plan:
    return Filter(plan, conjunction(conditions)) if conditions else plan


def _ids(rex: Rex) -> set[int]:
    return {each.column.id for each in rex.walk() if isinstance(each, ColumnRef)}


def _pure(rex: Rex) -> bool:
    """Whether it gives the same wherever it is computed, and needs no other table."""
    return not any(
        isinstance(each, SubqueryRex) or (isinstance(each, FunctionCall) and not each.binding.function.deterministic)
        for each in rex.walk()
    )


def _substituted(rex: Rex, items: dict[int, Rex]) -> Rex:
    return rex.transform(lambda node: items.get(node.column.id) if isinstance(node, ColumnRef) else None)


def _as_of(rex: Rex, columns: tuple[Column, ...]) -> Rex:
    """With the types that the columns have below the join."""
    by_id = {column.id: column for column in columns}

    def change(node: Rex) -> Rex | None:
        if not isinstance(node, ColumnRef):
            return None
        column = by_id.get(node.column.id, node.column)
        return replace(node, column=column)

    return rex.transform(change)
