"""Which functions of users an operator calls, so that they are opened with its context and closed with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from headwater.table.functions.definition import FunctionDefinition
from headwater.table.plan.nodes import Plan
from headwater.table.user.kernels import UserKernel


def kernels_in(operator: Any) -> list[UserKernel]:
    """The kernels in what an operator was made of. Plans below a node belong to other operators."""
    return list(_found(vars(operator), set()))


def _found(value: Any, seen: set[int]) -> Iterator[UserKernel]:
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, FunctionDefinition):
        gather = None if value.recipe is None else value.recipe.gather
        for called in (value.compute, gather):
            if isinstance(called, UserKernel):
                yield called
        return
    parts: Any = ()
    if isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, list | tuple):
        parts = value
    elif is_dataclass(value) and not isinstance(value, type):
        inside = (getattr(value, each.name) for each in fields(value))
        parts = [each for each in inside if not isinstance(each, Plan)]
    for part in parts:
        yield from _found(part, seen)
