"""Requests with many records, of which a server may take some and refuse others."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, TypeVar


class Keyed(Protocol):
    """Something to send."""

    @property
    def key(self) -> Hashable | None:
        """Those with the same key must arrive in order. None: it has no order."""
        ...


T = TypeVar("T", bound=Keyed)


def left_over(sent: Sequence[T], problems: Sequence[str | None]) -> tuple[list[T], str | None]:
    """What to send again, and the first reason: what was not taken, and all that follows it with the same key.

    `problems` says, for each, why it was not taken; None: it was. What follows is sent twice, so that the last one of a
    key that arrives is the last one that was sent.
    """
    again: list[T] = []
    keys: set[Hashable] = set()
    for each, problem in zip(sent, problems, strict=True):
        if problem is not None and each.key is not None:
            keys.add(each.key)
        if problem is not None or each.key in keys:
            again.append(each)
    return again, next((problem for problem in problems if problem is not None), None)
