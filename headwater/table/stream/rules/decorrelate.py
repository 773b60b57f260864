"""A query that refers to columns of the query around it, as one that does not, and conditions to join it by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headwater.common.errors import SqlError
from headwater.table.plan.calls import aggregate, call, find_function
from headwater.table.plan.context import new_column
from headwater.table.plan.expressions import (
    Column,
    ColumnRef,
    FunctionCall,
    Literal,
    Rex,
    SubqueryRex,
    WindowCall,
    ref,
)
from headwater.table.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Over,
    Plan,
    Project,
    Sort,
    Unnest,
    Watermark,
    WindowTable,
)
from headwater.table.stream.planner_ranks import conjunction, conjuncts

Outer = frozenset[int]
"""The ids of the columns of the query around."""


def decorrelate(plan: Plan, outer: Outer) -> tuple[Plan, list[Rex]]:
    """Pull the conditions that refer to `outer` up out of a query.

    Return the query without them, with the columns that they need added behind its own, and them: for a row of the
    query around, the original query gives the rows for which they hold. A global aggregate that had such conditions
    below it is one by key then: where the original gives a row for no rows, the new one gives none.
    """
    if not refers(plan, outer):
        return plan, []
    match plan:
        case Filter():
            inner, pulled = decorrelate(plan.input, outer)
            parts = conjuncts(plan.condition)
            kept = [each for each in parts if not _refers(each, outer)]
            pulled += [each for each in parts if _refers(each, outer)]
            return (Filter(inner, conjunction(kept)) if kept else inner), pulled
        case Project():
            inner, pulled = decorrelate(plan.input, outer)
            if any(_refers(rex, outer) for _, rex in plan.items):
                raise _unsupported("selects a column of the query around it")
            known = {column.id for column in plan.columns}
            needed = [column for column in inner.columns if column.id in _ids(pulled) and column.id not in known]
            return Project(inner, (*plan.items, *((column, ref(column)) for column in needed))), pulled
        case Aggregate() if plan.sets is None:
            inner, pulled = decorrelate(plan.input, outer)
            if any(_refers(rex, outer) for _, rex in (*plan.groups, *plan.calls)):
                raise _unsupported("aggregates a column of the query around it")
            groups, above = grouped(pulled, outer)
            return Aggregate(inner, (*plan.groups, *groups), plan.calls), above
        case Join():
            return _join(plan, outer)
        case Sort(limit=None, offset=None):
            return decorrelate(plan.input, outer)
        case Sort(limit=int(limit), keys=(_, *_)):
            return _first_rows(plan, limit, outer)
        case Unnest() | WindowTable() | Watermark() if not any(_refers(rex, outer) for rex in plan.rexes()):
            inner, pulled = decorrelate(plan.input, outer)
            return plan.with_inputs((inner,)), pulled
    raise _unsupported(f"has such a reference below {type(plan).__name__}")


def _first_rows(plan: Sort, limit: int, outer: Outer) -> tuple[Plan, list[Rex]]:
    """ORDER BY … LIMIT of each row of the query around: the first rows of each key."""
    inner, pulled = decorrelate(plan.input, outer)
    if any(_refers(key.expression, outer) for key in plan.keys):
        raise _unsupported("orders by a column of the query around it")
    groups, above = grouped(pulled, outer)
    keyed = Project(inner, (*((column, ref(column)) for column in inner.columns), *groups))
    number = aggregate(find_function("ROW_NUMBER"), ())
    place = new_column("$place", number.type)
    over = Over(keyed, ((place, WindowCall(number.type, number, tuple(ref(each) for each, _ in groups), plan.keys)),))
    first = plan.offset or 0
    bounds = [call("<=", (ref(place), Literal(place.type.not_null(), first + limit)))]
    if first:
        bounds.append(call(">", (ref(place), Literal(place.type.not_null(), first))))
    return Filter(over, conjunction(bounds)), above


def grouped(pulled: Iterable[Rex], outer: Outer) -> tuple[list[tuple[Column, Rex]], list[Rex]]:
    """The groups that an aggregate needs so that conditions can stand above it, and these conditions."""
    groups: list[tuple[Column, Rex]] = []
    above: list[Rex] = []
    for each in pulled:
        if _ids([each]) <= outer:
            above.append(each)
            continue
        if not isinstance(each, FunctionCall) or each.name not in ("=", "IS NOT DISTINCT FROM"):
            raise _unsupported("compares with a column of the query around it by more than =, below an aggregate")
        one, other = each.arguments
        if _refers(other, outer):
            one, other = other, one
        if _refers(other, outer) or not _ids([one]) <= outer:
            raise _unsupported("mixes columns of both queries on one side of a comparison, below an aggregate")
        column = next((known for known, rex in groups if rex == other), None)
        if column is None:
            column = new_column(f"$k{len(groups)}", other.type)
            groups.append((column, other))
        above.append(call(each.name, (one, ref(column)), each.span))
    return groups, above


def _join(plan: Join, outer: Outer) -> tuple[Plan, list[Rex]]:
    parts = [] if plan.condition is None else conjuncts(plan.condition)
    kept = [each for each in parts if not _refers(each, outer)]
    mine = [each for each in parts if _refers(each, outer)]
    inner = plan.kind in ("INNER", "CROSS")
    if not inner and (mine or plan.kind not in ("LEFT", "SEMI", "ANTI") or refers(plan.right, outer)):
        raise _unsupported(f"has such a reference in a {plan.kind} JOIN")
    left, pulled = decorrelate(plan.left, outer)
    right, more = decorrelate(plan.right, outer)
    known = {column.id for column in plan.columns}
    sides = (*left.columns, *right.columns) if inner or plan.kind == "LEFT" else left.columns
    added = [column for column in sides if column.id not in known and column.id in _ids([*pulled, *more])]
    condition = conjunction(kept) if kept else None
    columns = (*plan.columns, *added)
    return replace(plan, left=left, right=right, condition=condition, nullable=columns), [*pulled, *more, *mine]


def refers(plan: Plan, outer: Outer) -> bool:
    """Whether anything in a plan refers to a column of the query around it."""
    return any(_refers(rex, outer) for rex in plan.rexes()) or any(refers(each, outer) for each in plan.inputs())


def _refers(rex: Rex, outer: Outer) -> bool:
    for node in rex.walk():
        if isinstance(node, ColumnRef) and node.column.id in outer:
            return True
        if isinstance(node, SubqueryRex) and refers(node.plan, outer):
            return True
    return False


def _ids(rexes: Iterable[Rex]) -> set[int]:
    return {node.column.id for rex in rexes for node in rex.walk() if isinstance(node, ColumnRef)}


def _unsupported(what: str) -> SqlError:
    return SqlError(f"a subquery {what}: that does not run on streams; write it as a join")
