"""Windowing table functions, and the older windows of GROUP BY, which are the same thing said otherwise."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from headwater.common.errors import SqlError
from headwater.table.parser.ast import expressions as ast
from headwater.table.parser.ast.base import Expression
from headwater.table.plan.context import new_column
from headwater.table.plan.expressions import Column, ColumnRef, Literal, Rex
from headwater.table.plan.nodes import Plan, WindowTable
from headwater.table.types import logical as t

if TYPE_CHECKING:
    from headwater.table.plan.expression_binder import ExpressionBinder

KINDS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")

PARAMETERS = {
    "TUMBLE": (("SIZE",), ("OFFSET",)),
    "HOP": (("SLIDE", "SIZE"), ("OFFSET",)),
    "CUMULATE": (("STEP", "SIZE"), ("OFFSET",)),
    "SESSION": (("GAP",), ()),
}
"""{function: (lengths it needs, lengths it may have), in order}."""


def window_columns(time: Column) -> tuple[Column, ...]:
    bound = t.TimestampType(precision=3, nullable=False)
    kind: t.LogicalType = t.TimestampType(precision=3, nullable=False)
    if isinstance(time.type, t.LocalZonedTimestampType):
        kind = t.LocalZonedTimestampType(precision=3, nullable=False)
    return (new_column("window_start", bound), new_column("window_end", bound), new_column("window_time", kind))


def check_time(column: Column, kind: str) -> None:
    if not isinstance(column.type, t.TimestampType | t.LocalZonedTimestampType):
        raise SqlError(
            f"{kind} needs a time column: '{column.name}' is {column.type.sql()}, not TIMESTAMP or TIMESTAMP_LTZ"
        )


def milliseconds(rex: Rex, what: str) -> int:
    """The length of a constant day-time interval."""
    if not isinstance(rex, Literal) or not isinstance(rex.value, datetime.timedelta):
        raise SqlError(f"the {what} of a window is a constant INTERVAL of days to seconds, got {rex.type.sql()}")
    return round(rex.value.total_seconds() * 1000)


def make_window(
    plan: Plan,
    kind: str,
    time: Column,
    lengths: dict[str, int],
    partition_by: tuple[Column, ...] = (),
    whole: bool = True,
) -> WindowTable:
    """The window table function over `plan`. SqlError if the lengths do not go together.

    `whole`: the size of HOP is a multiple of its slide. GROUP BY HOP(…) does not need that.
    """
    check_time(time, kind)
    for word, length in lengths.items():
        if word != "OFFSET" and length <= 0:
            raise SqlError(f"the {word.lower()} of {kind} must be positive")
    size = lengths.get("SIZE", lengths.get("GAP", 0))
    step = lengths.get("SLIDE", lengths.get("STEP", 0))
    if step and kind == "CUMULATE" and size % step:
        raise SqlError(f"CUMULATE: the size ({size} ms) is no multiple of the step ({step} ms)")
    if step and kind == "HOP" and size % step and whole:
        raise SqlError(f"HOP: the size ({size} ms) is no multiple of the slide ({step} ms)")
    offset = lengths.get("OFFSET", 0)
    return WindowTable(plan, kind, time, size, step, offset, partition_by, window_columns(time))


def table_arguments(call: ast.Call, kind: str) -> dict[str, Expression]:
    """The arguments of a windowing table function by name, whether they were named or not."""
    required, optional = PARAMETERS[kind]
    order = ("DATA", "TIMECOL", *required, *optional)
    found: dict[str, Expression] = {}
    for place, argument in enumerate(call.arguments):
        if isinstance(argument, ast.NamedArgument):
            name, value = argument.name.upper(), argument.value
        elif place < len(order):
            name, value = order[place], argument
        else:
            raise SqlError(f"{kind} takes at most {len(order)} arguments, got {len(call.arguments)}")
        if name not in order:
            raise SqlError(f"{kind} has no parameter '{name}'; it has {', '.join(order)}")
        found[name] = value
    missing = [name for name in ("DATA", "TIMECOL", *required) if name not in found]
    if missing:
        raise SqlError(f"{kind} needs {', '.join(missing)}: {kind}({', '.join(order)})")
    return found


def group_window(node: ast.Call, binder: ExpressionBinder) -> tuple[str, Column, dict[str, int]]:
    """TUMBLE(time, size), HOP(time, slide, size) or SESSION(time, gap) of GROUP BY: its kind, column and lengths."""
    kind = node.name[0].upper()
    words = {"TUMBLE": ("SIZE",), "HOP": ("SLIDE", "SIZE"), "SESSION": ("GAP",)}[kind]
    if len(node.arguments) != 1 + len(words):
        raise SqlError(f"{kind} takes a time column and {len(words)} interval(s), got {len(node.arguments)} arguments")
    time = binder.bind(node.arguments[0])
    if not isinstance(time, ColumnRef):
        raise SqlError(f"{kind} needs a time column")
    check_time(time.column, kind)
    lengths = {
        word: milliseconds(binder.bind(argument), word.lower())
        for word, argument in zip(words, node.arguments[1:], strict=True)
    }
    return kind, time.column, lengths
