"""A countdown that one thread starts again and again, while another one waits for its end.

The one that waits does not run meanwhile. A thread that wakes up to look at a clock takes Python's lock from the one
that processes: a hundred times a second that costs a busy slot more than a thousand answers do.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import time

_library = ctypes.PyDLL(None, use_errno=True)  # it keeps Python's lock: these calls return at once
_create = _library.timerfd_create
_set = _library.timerfd_settime
_set.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_OVER_NS = 1


class Countdown:
    """At its end until it is started."""

    def __init__(self) -> None:
        self._timer = _create(time.CLOCK_MONOTONIC, os.O_CLOEXEC)
        if self._timer < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")
        self._ended = select.poll()
        self._ended.register(self._timer, select.POLLIN)
        self.end()

    def start(self, seconds: float) -> None:
        """Begin anew. Whoever waits goes on waiting."""
        self._set(int(seconds * 1e9))

    def end(self) -> None:
        """Be at the end now."""
        self._set(_OVER_NS)

    def wait(self) -> None:
        """Return at the end."""
        self._ended.poll()

    def _set(self, nanoseconds: int) -> None:
        _set(self._timer, 0, struct.pack("qqqq", 0, 0, *divmod(nanoseconds, 1_000_000_000)), None)
