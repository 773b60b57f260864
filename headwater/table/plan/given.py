"""A plan as a relation of a syntax tree: how the Table API builds queries without text."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.table.parser.ast.base import Relation
from headwater.table.plan.nodes import Plan


@dataclass(frozen=True)
class Given(Relation):
    """The rows of a plan. `name` is what its columns may be qualified with."""

    plan: Plan
    name: str = ""
