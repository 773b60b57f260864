"""Logs {key: what was there before it changed}, and how those of several epochs become one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

Log = dict[Any, Any]


class Join(Protocol):
    """`merged` or `absorbed`."""

    def __call__(self, older: Log, newer: Log, combine: Combine | None = None) -> Log: ...


Combine = Callable[[Any, Any, Any, Join], Any]
"""(key, what the older log has, what the newer one has, how to join what is a log again) -> what both have."""


def merged(older: Log, newer: Log, combine: Combine | None = None) -> Log:
    """One log of the changes in both. What was there before the older ones counts, where `combine` does not say it."""
    log = {**newer, **older}
    if combine is not None:
        for key in older.keys() & newer.keys():
            log[key] = combine(key, older[key], newer[key], merged)
    return log


def absorbed(older: Log, newer: Log, combine: Combine | None = None) -> Log:
    """The same of logs that nobody needs any more: one of them becomes the result.

    It costs what the smaller one has, so that an epoch does not pay for all that changed before it.
    """
    if combine is not None:
        for key in older.keys() & newer.keys():
            older[key] = combine(key, older[key], newer[key], absorbed)
    if len(newer) > len(older):
        newer.update(older)
        return newer
    keep_first(older, newer, newer.values())
    return older


def keep_first(log: Log, keys: Iterable[Any], befores: Iterable[Any]) -> None:
    """Add what was there before of those keys that `log` does not have. Without a Python instruction per key."""
    deque(map(log.setdefault, keys, befores), maxlen=0)
