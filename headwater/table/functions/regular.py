"""Functions of regular expressions. The expressions are Java's; a malformed one gives NULL."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.table.functions.definition import Binding, Column, FunctionDefinition, SparkText
from headwater.table.functions.frame import Frame
from headwater.table.functions.java_regex import compile_java, re2_with_group
from headwater.table.functions.kernels import row_by_row
from headwater.table.functions.signatures import INT32, TEXT, call
from headwater.table.types import logical as t

FAMILY = "regular expressions"


def _find(value: str, pattern: str) -> bool:
    if not pattern:
        return False
    compiled = compile_java(pattern)
    return compiled is not None and compiled.search(value) is not None


def _replace(value: str, pattern: str, replacement: str) -> str | None:
    compiled = compile_java(pattern)
    return None if compiled is None else compiled.sub(lambda _: replacement, value)


def _group(match: re.Match[str], index: int) -> str | None:
    try:
        return match.group(index)
    except IndexError:
        return None


def _extract(value: str, pattern: str, index: int = 0) -> str | None:
    compiled = compile_java(pattern)
    match = None if compiled is None or index < 0 else compiled.search(value)
    return None if match is None else _group(match, index)


def _extract_column(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    values, pattern, *more = columns
    if isinstance(values, pa.Array) and isinstance(pattern, pa.Scalar) and pattern.is_valid:
        group = more[0] if more else pa.scalar(0)
        plain = isinstance(group, pa.Scalar) and group.is_valid and re2_with_group(pattern.as_py(), group.as_py())
        if plain:
            return pc.struct_field(pc.extract_regex(values, plain), "g")
    return row_by_row(_extract)(columns, binding, frame)


def _extract_all(value: str, pattern: str, index: int = 1) -> list[str | None] | None:
    compiled = compile_java(pattern)
    if compiled is None or not 0 <= index <= compiled.groups:
        return None
    return [match.group(index) for match in compiled.finditer(value)]


def _count(value: str, pattern: str) -> int | None:
    compiled = compile_java(pattern)
    return None if compiled is None else sum(1 for _ in compiled.finditer(value))


def _place(value: str, pattern: str) -> int | None:
    compiled = compile_java(pattern)
    match = None if compiled is None else compiled.search(value)
    return None if compiled is None else 0 if match is None else match.start() + 1


def _substring(value: str, pattern: str) -> str | None:
    return _extract(value, pattern, 0)


def _define(
    name: str, bind: Any, syntax: str, text: str, function: Callable[..., Any], spark_text: SparkText | None = None
) -> FunctionDefinition:
    return FunctionDefinition(
        name,
        FAMILY,
        bind,
        syntax,
        text,
        compute=_extract_column if function is _extract else row_by_row(function),
        spark_text=spark_text,
        note="Flags and classes that only Java has (\\p{IsHan}, \\R) are unknown to the kernel: NULL.",
    )


FUNCTIONS = (
    _define(
        "REGEXP",
        call(TEXT, TEXT, result=t.BOOLEAN, nullable=True),
        "REGEXP(s, pattern)",
        "True if a part of the string matches.",
        _find,
    ),
    _define(
        "REGEXP_REPLACE",
        call(TEXT, TEXT, TEXT, result=t.STRING, nullable=True),
        "REGEXP_REPLACE(s, pattern, replacement)",
        "Each match replaced by the text as it is.",
        _replace,
    ),
    _define(
        "REGEXP_EXTRACT",
        call(TEXT, TEXT, INT32, result=t.STRING, optional=1, nullable=True),
        "REGEXP_EXTRACT(s, pattern [, group])",
        "A group (0: all) of the first match; NULL if there is none.",
        _extract,
    ),
    _define(
        "REGEXP_EXTRACT_ALL",
        call(TEXT, TEXT, INT32, result=t.ArrayType(element=t.STRING), optional=1, nullable=True),
        "REGEXP_EXTRACT_ALL(s, pattern [, group])",
        "A group (1) of every match.",
        _extract_all,
    ),
    _define(
        "REGEXP_COUNT",
        call(TEXT, TEXT, result=t.INT, nullable=True),
        "REGEXP_COUNT(s, pattern)",
        "How many matches there are.",
        _count,
    ),
    _define(
        "REGEXP_INSTR",
        call(TEXT, TEXT, result=t.INT, nullable=True),
        "REGEXP_INSTR(s, pattern)",
        "Where the first match begins; 0 if there is none.",
        _place,
    ),
    _define(
        "REGEXP_SUBSTR",
        call(TEXT, TEXT, result=t.STRING, nullable=True),
        "REGEXP_SUBSTR(s, pattern)",
        "The first match; NULL if there is none.",
        _substring,
    ),
)
