"""Flink's JSON of metrics: lists of names, values as text, aggregates over subtasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headwater.server.shapes.vertex import Figures

NO_WATERMARK = -(2**63)
"""Flink's value of a watermark before the first one."""

AGGREGATES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "max": max,
    "avg": lambda values: sum(values) / len(values),
    "sum": sum,
    "skew": lambda values: _skew(values),
}


def _skew(values: Sequence[float]) -> float:
    """Mean deviation from the mean, in percent of it."""
    mean = sum(values) / len(values)
    return sum(abs(value - mean) for value in values) / len(values) / abs(mean) * 100 if mean else 0.0


def listed(figures: Figures, wanted: Sequence[str] | None) -> list[dict[str, str]]:
    """The names that there are; with `wanted`, the values of those among them that exist."""
    if wanted is None:
        return [{"id": name} for name in figures]
    return [{"id": name, "value": _text(figures[name])} for name in wanted if name in figures]


def indexed(subtasks: Sequence[Figures]) -> dict[str, Any]:
    """The figures of a vertex as Flink names them: `0.numRecordsIn`, `1.numRecordsIn` ..."""
    return {f"{index}.{name}": value for index, each in enumerate(subtasks) for name, value in each.items()}


def aggregates(parts: Sequence[Figures], wanted: Sequence[str] | None, which: Sequence[str]) -> list[dict[str, Any]]:
    """The names that any of the parts has; with `wanted`, aggregates over the parts that have them."""
    if wanted is None:
        return [{"id": name} for name in dict.fromkeys(name for part in parts for name in part)]
    found = []
    for name in wanted:
        values = [value for part in parts if (value := _number(part.get(name))) is not None]
        if values:
            chosen = which or tuple(AGGREGATES)
            found.append(
                {"id": name, **{each: float(AGGREGATES[each](values)) for each in AGGREGATES if each in chosen}}
            )
    return found


def watermarks(subtasks: Sequence[Figures]) -> list[dict[str, str]]:
    """`/jobs/:jobid/vertices/:vertexid/watermarks`. A vertex without an input has none."""
    name = "currentInputWatermark"
    if not any(name in each for each in subtasks):
        return []
    return [
        {"id": f"{index}.{name}", "value": _text(NO_WATERMARK if each.get(name) is None else each[name])}
        for index, each in enumerate(subtasks)
    ]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value)


def _number(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None
