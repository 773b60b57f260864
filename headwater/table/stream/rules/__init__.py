"""The rules of the planner, one file each: file = function. `RULES` is the order in which they run."""

from __future__ import annotations

from collections.abc import Callable

from headwater.table.plan.nodes import Plan
from headwater.table.stream.rules.lateral import lateral
from headwater.table.stream.rules.prune_columns import prune_columns
from headwater.table.stream.rules.push_filters import push_filters
from headwater.table.stream.rules.subqueries import subqueries

RULES: tuple[Callable[[Plan], Plan], ...] = (
    lateral,
    subqueries,
    push_filters,
    prune_columns,
)


def optimised(plan: Plan) -> Plan:
    """The plan after all rules."""
    for rule in RULES:
        plan = rule(plan)
    return plan
