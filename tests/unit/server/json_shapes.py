"""Compares the shapes of two JSON values: fields and types, not values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

FREE = re.compile(
    "user-config|serialized-user-task-accumulators|accumulator-results|failureLabels|optimizer_properties"
)
"""Objects whose keys are the user's."""
OPTIONAL = {"inputs", "taskName", "endpoint", "taskManagerId", "failure_timestamp", "failure_message"}
"""Fields that Flink has in other cases than the recorded one."""


class Shape(NamedTuple):
    """What all values have in common, and which fields only some of them have."""

    kinds: frozenset[str]
    fields: dict[str, Shape]
    optional: frozenset[str]
    elements: Shape | None


def kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)) or value == "NaN":
        return "number"
    return "null" if value is None else type(value).__name__


def shape_of(*values: Any) -> Shape:
    objects = [value for value in values if isinstance(value, dict)]
    names = dict.fromkeys(name for each in objects for name in each)
    elements = [element for value in values if isinstance(value, list) for element in value]
    return Shape(
        frozenset(map(kind, values)),
        {name: shape_of(*(each[name] for each in objects if name in each)) for name in names},
        frozenset(name for name in names if not all(name in each for each in objects)),
        shape_of(*elements) if elements else None,
    )


def differences(ours: Any, theirs: Shape, may_be_empty: re.Pattern[str], where: str = "") -> Iterator[str]:
    """Name what `ours` has not, has too much, or has with another type."""
    if FREE.search(where):
        return
    found = kind(ours)
    if found not in theirs.kinds:
        if found != "null" and theirs.kinds != {"null"}:
            yield f"{where}: {found} instead of {'/'.join(sorted(theirs.kinds))}"
    elif isinstance(ours, dict) and ours and all(re.fullmatch("[0-9a-f]{32}", name) for name in ours):
        for name, value in ours.items():  # by id: all values are alike
            yield from differences(value, next(iter(theirs.fields.values())), may_be_empty, f"{where}/{name}")
    elif isinstance(ours, dict) and theirs.fields:
        yield from (f"{where}/{name} is missing" for name in sorted(set(theirs.fields) - set(ours) - theirs.optional))
        yield from (f"{where}/{name} is new" for name in sorted(set(ours) - set(theirs.fields) - OPTIONAL))
        for name in sorted(set(ours) & set(theirs.fields)):
            yield from differences(ours[name], theirs.fields[name], may_be_empty, f"{where}/{name}")
    elif isinstance(ours, list) and theirs.elements is not None:
        if not ours and not may_be_empty.search(where):
            yield f"{where} is empty"
        for value in ours:
            yield from differences(value, theirs.elements, may_be_empty, f"{where}[]")
