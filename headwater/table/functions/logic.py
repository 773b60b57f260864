"""Logic of three values: true, false and unknown, which is NULL."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from headwater.table.functions.definition import Column, FunctionDefinition
from headwater.table.functions.kernels import infix, vectorised
from headwater.table.functions.signatures import BOOL, call
from headwater.table.types import logical as t

FAMILY = "logic"


def _junction(word: str, kernel: Callable[[Column, Column], Column], text: str) -> FunctionDefinition:
    def fold(*columns: Column) -> Column:
        return reduce(kernel, columns)

    return FunctionDefinition(
        word,
        FAMILY,
        call(BOOL, BOOL, result=t.BOOLEAN, variadic=True),
        f"a {word} b",
        text,
        compute=vectorised(fold),
        spark_text=lambda arguments, _: f"({f' {word} '.join(arguments)})",
        text=infix(word),
    )


def _test(word: str, value: bool | None, negative: bool) -> FunctionDefinition:
    """IS TRUE and its kind: never NULL."""

    def kernel(column: Column) -> Column:
        found = pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, pa.scalar(value)), False)
        return pc.invert(found) if negative else found

    return FunctionDefinition(
        word,
        FAMILY,
        call(BOOL, result=t.BOOLEAN, nullable=False),
        f"a {word}",
        f"True if a is {'not ' if negative else ''}{'unknown (NULL)' if value is None else str(value).lower()}.",
        compute=vectorised(kernel),
        spark_text=lambda arguments, _: f"({arguments[0]} {word})",
        text=lambda arguments: f"({arguments[0]} {word})",
    )


FUNCTIONS = (
    _junction("AND", pc.and_kleene, "True if both are; false if one is false; else unknown."),
    _junction("OR", pc.or_kleene, "True if one is; false if both are false; else unknown."),
    FunctionDefinition(
        "NOT",
        FAMILY,
        call(BOOL, result=t.BOOLEAN),
        "NOT a",
        "The opposite; unknown stays unknown.",
        compute=vectorised(pc.invert),
        spark_text=lambda arguments, _: f"(NOT {arguments[0]})",
        text=lambda arguments: f"(NOT {arguments[0]})",
    ),
    _test("IS TRUE", True, False),
    _test("IS NOT TRUE", True, True),
    _test("IS FALSE", False, False),
    _test("IS NOT FALSE", False, True),
    _test("IS UNKNOWN", None, False),
    _test("IS NOT UNKNOWN", None, True),
)
