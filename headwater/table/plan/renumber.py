"""The same plan with new column ids, so that a plan may be used twice in another one."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

from headwater.table.plan.context import new_column
from headwater.table.plan.expressions import Column, Frame, FrameBound, Rex, SortKey
from headwater.table.plan.match import MatchDefinition, MatchValue
from headwater.table.plan.nodes import Plan

_WALKED = (Plan, Rex, SortKey, Frame, FrameBound, MatchValue, MatchDefinition)


def renumbered(plan: Plan, keep: Collection[int] = ()) -> Plan:
    """A plan that computes the same, of which no column has an id of the given one, but for those of `keep`."""
    new: dict[int, int] = {id_: id_ for id_ in keep}

    def column(old: Column) -> Column:
        if old.id not in new:
            new[old.id] = new_column(old.name, old.type).id
        return Column(new[old.id], old.name, old.type)

    def copy(value: Any) -> Any:
        if isinstance(value, Column):
            return column(value)
        if isinstance(value, tuple):
            return tuple(copy(each) for each in value)
        if isinstance(value, _WALKED):
            changes = {each.name: copy(getattr(value, each.name)) for each in dataclasses.fields(value)}
            return dataclasses.replace(value, **changes)
        return value

    copied = copy(plan)
    assert isinstance(copied, Plan)
    return copied
