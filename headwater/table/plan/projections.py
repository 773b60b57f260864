"""Small plans around plans: casts, renamed columns."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.table.plan.calls import cast
from headwater.table.plan.context import new_column
from headwater.table.plan.expressions import ref
from headwater.table.plan.nodes import Plan, Project
from headwater.table.types.logical import LogicalType


def cast_columns(plan: Plan, types: Sequence[LogicalType]) -> Plan:
    """The plan with its columns cast to these types, where they differ."""
    if all(column.type.same_kind(type_) for column, type_ in zip(plan.columns, types, strict=True)):
        return plan
    items = []
    for column, type_ in zip(plan.columns, types, strict=True):
        rex = cast(ref(column), type_)
        items.append((new_column(column.name, rex.type), rex))
    return Project(plan, tuple(items))


def renamed(plan: Plan, names: Sequence[str]) -> Plan:
    """The plan with these column names."""
    if tuple(names) == tuple(column.name for column in plan.columns):
        return plan
    pairs = zip(plan.columns, names, strict=True)
    return Project(plan, tuple((new_column(name, column.type), ref(column)) for column, name in pairs))


def unique_names(names: Sequence[str]) -> list[str]:
    """Names of which no two are equal: a second `a` becomes `a0`, as in Flink."""
    used: set[str] = set()
    found = []
    for name in names:
        unique, attempt = name, 0
        while unique in used:
            unique, attempt = f"{name}{attempt}", attempt + 1
        used.add(unique)
        found.append(unique)
    return found
