"""Joins whose state time bounds: of equal windows, and of rows within an interval of each other."""

from __future__ import annotations

import datetime
from dataclasses import replace
from functools import partial

from headwater.table.plan.expressions import Column, ColumnRef, FunctionCall, Literal, Rex
from headwater.table.stream.operators.interval_join import IntervalJoinOperator
from headwater.table.stream.operators.watermarks import WatermarkDelayOperator
from headwater.table.stream.operators.window_join import WindowJoinOperator
from headwater.table.stream.physical import ROWTIME, Physical, State, WindowPart
from headwater.table.stream.planner_joins import Joining, join_traits
from headwater.table.stream.planner_ranks import conjunction


def timed_join(joining: Joining) -> Physical | None:
    """A window or interval join, if the condition is one; None otherwise."""
    if not (joining.left.traits.append_only and joining.right.traits.append_only):
        return None
    return _window_join(joining) or _interval_join(joining)


def _window_join(joining: Joining) -> Physical | None:
    ends = {}
    parts: dict[str, WindowPart] = {}
    for each in joining.equal:
        one, other = _part(each.left, joining.left), _part(each.right, joining.right)
        if one is not None and one == other:
            parts[one.part] = one
            ends[one.part] = each
    if "start" not in parts or "end" not in parts:
        return None
    sides = joining.sides()
    residual = conjunction(joining.rest) if joining.rest else None
    place = list(joining.equal).index(ends["end"])
    event = parts["end"].time == ROWTIME
    made = sides.physical(
        "WindowJoin",
        WindowJoinOperator,
        residual,
        join_traits(sides, residual, timed=True),
        State("rows of both sides until their window closes", bounded=True),
        ticks=not event,
        window_end=(sides.left_keys[place], sides.right_keys[place]),
        null_safe=sides.null_safe,
        time="event" if event else "processing",
        zoned=parts["end"].zoned,
    )
    return joining.chosen(made)


def _part(rex: Rex, side: Physical) -> WindowPart | None:
    return side.traits.windows.get(rex.column.id) if isinstance(rex, ColumnRef) else None


def _interval_join(joining: Joining) -> Physical | None:
    found = _Interval(joining.left, joining.right)
    for each in joining.equal:
        if isinstance(each.left, ColumnRef) and isinstance(each.right, ColumnRef):
            found.add("=", each.left, each.right)
    others = [each for each in joining.rest if not found.take(each)]
    if found.lower is None or found.upper is None or found.left is None or found.right is None:
        return None
    sides = joining.sides()
    event = found.time == ROWTIME
    whole = conjunction(joining.rest) if joining.rest else None
    traits = replace(join_traits(sides, whole, timed=True), windows={})
    made = sides.physical(
        "IntervalJoin",
        IntervalJoinOperator,
        conjunction(others) if others else None,
        traits,
        State("rows of both sides until the interval has passed", bounded=True),
        detail=f", {found.left.name} - {found.right.name} in [{found.lower} ms, {found.upper} ms]",
        ticks=not event,
        left_time=found.left,
        right_time=found.right,
        lower_ms=found.lower,
        upper_ms=found.upper,
        null_safe=sides.null_safe,
        time="event" if event else "processing",
    )
    delay = max(found.upper, -found.lower, 0)
    if event and delay:
        # A pair has the time of its older row, too: what comes behind must wait for it.
        delayed = partial(WatermarkDelayOperator, made.columns, delay)
        made = Physical("WatermarkDelay", f"{delay} ms", made.columns, (made,), delayed, traits=traits)
    return joining.chosen(made)


class _Interval:
    """Collects bounds of `left time - right time` from conditions."""

    def __init__(self, left: Physical, right: Physical) -> None:
        self._sides = left, right
        self.left: Column | None = None
        self.right: Column | None = None
        self.time = ""
        self.lower: int | None = None
        self.upper: int | None = None

    def take(self, condition: Rex) -> bool:
        """Whether the condition is such a bound: then it is noted, and holds by itself."""
        if not isinstance(condition, FunctionCall):
            return False
        if condition.name == "BETWEEN" and len(condition.arguments) == 3:
            value, low, high = condition.arguments
            if not (self.fits(value, low) and self.fits(value, high)):
                return False
            return self.add(">=", value, low) and self.add("<=", value, high)
        if len(condition.arguments) != 2:
            return False
        return self.add(condition.name, *condition.arguments)

    def fits(self, one: Rex, other: Rex) -> bool:
        return self._compared(one, other) is not None

    def add(self, operator: str, one: Rex, other: Rex) -> bool:
        compared = self._compared(one, other)
        if compared is None or operator not in ("=", "<", "<=", ">", ">="):
            return False
        left, right, apart, swapped = compared  # left + … operator right: left - right operator apart
        if swapped:
            operator = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
        self.left, self.right = left, right
        self.time = self._sides[0].traits.times[left.id]
        if operator in ("=", ">=", ">"):
            bound = apart + (operator == ">")
            self.lower = bound if self.lower is None else max(self.lower, bound)
        if operator in ("=", "<=", "<"):
            bound = apart - (operator == "<")
            self.upper = bound if self.upper is None else min(self.upper, bound)
        return True

    def _compared(self, one: Rex, other: Rex) -> tuple[Column, Column, int, bool] | None:
        """(left column, right column, what is compared with their difference, whether the sides were swapped)."""
        first, second = _shifted(one), _shifted(other)
        if first is None or second is None:
            return None
        swapped = first[0].id not in {column.id for column in self._sides[0].columns}
        if swapped:
            first, second = second, first
        times = [side.traits.times.get(each[0].id) for side, each in zip(self._sides, (first, second), strict=True)]
        if times[0] is None or times[0] != times[1]:
            return None
        if any(getattr(each[0].type, "precision", 3) > 3 for each in (first, second)):
            return None  # "<" is "<= a millisecond less" only for milliseconds
        if self.left is not None and (self.left.id, getattr(self.right, "id", 0)) != (first[0].id, second[0].id):
            return None
        return first[0], second[0], second[1] - first[1], swapped


def _shifted(rex: Rex) -> tuple[Column, int] | None:
    """A column and how many milliseconds are added to it."""
    if isinstance(rex, ColumnRef):
        return rex.column, 0
    if isinstance(rex, FunctionCall) and rex.name == "CAST":
        return _shifted(rex.arguments[0])
    if isinstance(rex, FunctionCall) and rex.name in ("+", "-") and len(rex.arguments) == 2:
        base, shift = rex.arguments
        if rex.name == "+" and isinstance(base, Literal):
            base, shift = shift, base
        inner = _shifted(base)
        if inner is None or not isinstance(shift, Literal) or not isinstance(shift.value, datetime.timedelta):
            return None
        milliseconds = round(shift.value.total_seconds() * 1000)
        return inner[0], inner[1] + (milliseconds if rex.name == "+" else -milliseconds)
    return None
