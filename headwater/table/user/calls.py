"""Calls of functions that the program holds, without a name in a catalog."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.table.functions.definition import FunctionDefinition
from headwater.table.parser.ast.expressions import Call


@dataclass(frozen=True)
class UserCall(Call):
    """A call that knows its function."""

    definition: FunctionDefinition | None = None
