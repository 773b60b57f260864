"""All functions of the system, one module per family. The page lists them in this order."""

from __future__ import annotations

from headwater.table.functions import (
    aggregates,
    arithmetic,
    casts,
    collections,
    comparison,
    conditional,
    encodings,
    hashes,
    json,
    logic,
    numeric,
    regular,
    strings,
)
from headwater.table.functions.definition import FunctionDefinition
from headwater.table.functions.temporal import current, differences, fields, rounding, text

ALL: tuple[FunctionDefinition, ...] = (
    *comparison.FUNCTIONS,
    *logic.FUNCTIONS,
    *arithmetic.FUNCTIONS,
    *numeric.FUNCTIONS,
    *strings.FUNCTIONS,
    *encodings.FUNCTIONS,
    *regular.FUNCTIONS,
    *json.FUNCTIONS,
    *fields.FUNCTIONS,
    *rounding.FUNCTIONS,
    *text.FUNCTIONS,
    *differences.FUNCTIONS,
    *current.FUNCTIONS,
    *conditional.FUNCTIONS,
    *casts.FUNCTIONS,
    *collections.FUNCTIONS,
    *hashes.FUNCTIONS,
    *aggregates.FUNCTIONS,
)
