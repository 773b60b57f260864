"""Joins as the standard defines them: each row against each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from tests.unit.table.stream.driver import Row


def nested_loops(
    lefts: Iterable[Row], rights: Iterable[Row], kind: str, matches: Callable[[Row, Row], bool], widths: tuple[int, int]
) -> Counter[Row]:
    """The join of two tables. `widths` are their numbers of columns."""
    lefts, rights = list(lefts), list(rights)
    found: list[Row] = []
    for one in lefts:
        hits = [other for other in rights if matches(one, other)]
        if kind in ("SEMI", "ANTI"):
            found += [one] if bool(hits) == (kind == "SEMI") else []
            continue
        found += [(*one, *other) for other in hits]
        if not hits and kind in ("LEFT", "FULL"):
            found.append((*one, *[None] * widths[1]))
    if kind in ("RIGHT", "FULL"):
        alone = [other for other in rights if not any(matches(one, other) for one in lefts)]
        found += [(*[None] * widths[0], *other) for other in alone]
    return Counter(found)
