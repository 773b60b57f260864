"""Queries in expressions become joins: EXISTS and IN of WHERE semi and anti joins, values left joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headwater.table.plan.calls import call
from headwater.table.plan.context import new_column
from headwater.table.plan.expressions import (
    AggregateCall,
    Column,
    ExistsSubquery,
    FunctionCall,
    Grouping,
    InSubquery,
    Literal,
    Rex,
    ScalarSubquery,
    SubqueryRex,
    ref,
)
from headwater.table.plan.nodes import Aggregate, Filter, Join, Plan, Project
from headwater.table.plan.renumber import renumbered
from headwater.table.stream.planner_ranks import conjunction, conjuncts
from headwater.table.stream.rules.decorrelate import decorrelate
from headwater.table.stream.rules.subquery_values import ValueJoins, gives_one_row
from headwater.table.types.logical import BOOLEAN


def subqueries(plan: Plan) -> Plan:
    """Replace every subquery of a plan."""
    return plan.rewrite(_replaced)


def _replaced(plan: Plan) -> Plan:
    if not any(isinstance(node, SubqueryRex) for rex in plan.rexes() for node in rex.walk()):
        return plan
    match plan:
        case Filter():
            return _filter(plan)
        case Project():
            values = ValueJoins(plan.input, subqueries)
            items = tuple((column, values.replace(rex)) for column, rex in plan.items)
            return Project(values.plan, items)
        case Aggregate():
            values = ValueJoins(plan.input, subqueries)
            groups = tuple((column, values.replace(rex)) for column, rex in plan.groups)
            calls: list[tuple[Column, AggregateCall | Grouping]] = []
            for column, rex in plan.calls:
                found = values.replace(rex)
                assert isinstance(found, AggregateCall | Grouping)
                calls.append((column, found))
            return replace(plan, input=values.plan, groups=groups, calls=tuple(calls))
        case Join(kind="INNER" | "CROSS") if not plan.lateral and plan.condition is not None:
            parts = conjuncts(plan.condition)
            above = [each for each in parts if any(isinstance(node, SubqueryRex) for node in each.walk())]
            kept = [each for each in parts if each not in above]
            return _filter(Filter(replace(plan, condition=conjunction(kept) if kept else None), conjunction(above)))
    return plan


def _filter(plan: Filter) -> Plan:
    """Conditions that are a subquery by themselves become joins; the others get values."""
    result, columns = plan.input, plan.input.columns
    plain: list[Rex] = []
    for each in conjuncts(plan.condition):
        joined = _joined(result, each)
        if joined is None:
            plain.append(each)
        else:
            result = joined
    if not plain:
        return result
    values = ValueJoins(result, subqueries)
    condition = conjunction([values.replace(each) for each in plain])
    result = Filter(values.plan, condition)
    if values.plan.columns == columns:
        return result
    return Project(result, tuple((column, ref(column)) for column in columns))


def _joined(plan: Plan, condition: Rex) -> Plan | None:
    """The rows of a plan for which a condition holds that is an EXISTS or IN; None for other conditions."""
    negated = False
    while isinstance(condition, FunctionCall) and condition.name == "NOT":
        condition, negated = condition.arguments[0], not negated
    if not isinstance(condition, ExistsSubquery | InSubquery):
        return None
    negated ^= condition.negated
    inner = subqueries(condition.plan)
    if gives_one_row(inner):
        return _with_one_row(plan, condition, negated, inner)
    if isinstance(condition, ExistsSubquery):
        return _semi(plan, inner, [], negated)
    if not negated:
        equal = [call("=", (x, ref(y))) for x, y in zip(condition.operands, inner.columns, strict=True)]
        return _semi(plan, inner, equal, False)
    return _not_in(plan, inner, condition.operands)


def _with_one_row(plan: Plan, condition: Rex, negated: bool, inner: Plan) -> Plan | None:
    """A global aggregate gives a row even of nothing, which a join by key does not see: compare with its value."""
    if isinstance(condition, ExistsSubquery):
        return Filter(plan, Literal(BOOLEAN.not_null(), False)) if negated else plan
    assert isinstance(condition, InSubquery)
    if len(condition.operands) > 1:
        return None
    scalar = ScalarSubquery(inner.columns[0].type.with_nullable(True), inner, span=condition.span)
    compared = call("<>" if negated else "=", (condition.operands[0], scalar), condition.span)
    return _filter(Filter(plan, compared))


def _semi(plan: Plan, inner: Plan, conditions: Sequence[Rex], negated: bool) -> Plan:
    right, pulled = decorrelate(inner, frozenset(column.id for column in plan.columns))
    everything = [*conditions, *pulled]
    condition = conjunction(everything) if everything else None
    return Join(plan, right, "ANTI" if negated else "SEMI", condition, False, plan.columns)


def _not_in(plan: Plan, inner: Plan, operands: Sequence[Rex]) -> Plan:
    """`x NOT IN (query)`: no row is equal to x, none is NULL, and x is not NULL, or there is no row at all."""
    pairs = list(zip(operands, inner.columns, strict=True))
    nullable = any(x.type.nullable or y.type.nullable for x, y in pairs)
    if nullable and len(pairs) > 1:
        equal = conjunction([call("=", (x, ref(y))) for x, y in pairs])
        return _semi(plan, inner, [call("IS NOT FALSE", (equal,))], True)
    result = _semi(plan, inner, [call("=", (x, ref(y))) for x, y in pairs], True)
    x, y = pairs[0]
    outer = frozenset(column.id for column in plan.columns)
    if x.type.nullable:
        one = Literal(BOOLEAN.not_null(), True)
        other = renumbered(inner, outer)
        marked = new_column("$any", one.type)
        columns = tuple((column, ref(column)) for column in other.columns)
        # A key that is NULL but where x is: rows with another x are not kept in state.
        missing = call("CASE", (call("IS NULL", (x,)), one, Literal(BOOLEAN, None)))
        result = _semi(result, Project(other, (*columns, (marked, one))), [call("=", (missing, ref(marked)))], True)
    if y.type.nullable:
        other = renumbered(inner, outer)
        result = _semi(result, Filter(other, call("IS NULL", (ref(other.columns[0]),))), [], True)
    return result
