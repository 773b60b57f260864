"""Undo logs {key: its value before the change}, and how the logs of several epochs are joined into one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

Log = dict[Any, Any]


class Join(Protocol):
    """The signature of `merged` and `absorbed`."""

    def __call__(self, older: Log, newer: Log, combine: Combine | None = None) -> Log: ...


Combine = Callable[[Any, Any, Any, Join], Any]
"""(key, entry of the older log, entry of the newer log, how to join nested logs) -> entry of the joined log"""


def merged(older: Log, newer: Log, combine: Combine | None = None) -> Log:
    """Return one log of the changes in both. Without `combine`, the older log's entry wins."""
    log = {**newer, **older}
    if combine is not None:
        for key in older.keys() & newer.keys():
            log[key] = combine(key, older[key], newer[key], merged)
    return log


def absorbed(older: Log, newer: Log, combine: Combine | None = None) -> Log:
    """Like `merged`, but reuses one of the two logs for the result: the caller must not use them afterwards.

    The cost depends on the smaller log, so an epoch does not pay for all changes before it.
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
    """Add (key, before) to `log` for keys that it does not have. Runs without a Python instruction per key."""
    deque(map(log.setdefault, keys, befores), maxlen=0)


def keep_log(kept: dict[int, Log], epoch: int, log: Log, combination: tuple[Combine | None] | None) -> None:
    """Keep the log of the changes after `epoch` for readers; joined with the last kept one if `combination` says how.

    So what is kept grows with the number of keys, not with the time.
    """
    if combination is not None and kept:
        last = max(kept)
        kept[last] = absorbed(kept[last], log, combination[0])
    else:
        kept[epoch] = log
