"""All functions of the system, one module per family. The page lists them in this order."""

from __future__ import annotations

from headwater.table.functions import comparison, logic
from headwater.table.functions.definition import FunctionDefinition

ALL: tuple[FunctionDefinition, ...] = (
    *comparison.FUNCTIONS,
    *logic.FUNCTIONS,
)
