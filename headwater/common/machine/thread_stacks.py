"""Where the threads of this process are right now: what thread dumps and flame graphs are made of."""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType
from typing import NamedTuple

_DEEPEST = 200
_AT_WORK = 0.5
"""A thread that has used this part of the time since it was looked at last is at work."""

_seen: dict[int, tuple[float, float]] = {}  # {thread: (its processor time, when)} at the last look


class ThreadStack(NamedTuple):
    """One thread at one moment."""

    id: int
    name: str
    on_cpu: bool
    """It has spent most of the time since the last look on a processor. False at the first look."""
    frames: list[str]
    """`module.function:line`, the outermost first."""


def thread_stacks() -> list[ThreadStack]:
    """Return all threads but the one that asks, the oldest first."""
    own = threading.get_ident()
    threads = {thread.ident: thread for thread in threading.enumerate() if thread.ident not in (None, own)}
    frames = sys._current_frames()
    found = [
        ThreadStack(ident, thread.name, _is_on_cpu(ident), _stack(frames[ident]))
        for ident, thread in threads.items()
        if ident is not None and ident in frames
    ]
    for gone in _seen.keys() - threads.keys():
        _seen.pop(gone, None)
    return found


def _is_on_cpu(ident: int) -> bool:
    now = time.monotonic()
    try:
        used = time.clock_gettime(time.pthread_getcpuclockid(ident))
    except (AttributeError, OSError):
        return True  # not known here
    before, when = _seen.get(ident, (used, now))
    _seen[ident] = (used, now)
    return used - before > _AT_WORK * (now - when)


def _stack(frame: FrameType | None) -> list[str]:
    found: list[str] = []
    while frame is not None and len(found) < _DEEPEST:
        found.append(f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}:{frame.f_lineno}")
        frame = frame.f_back
    return found[::-1]
