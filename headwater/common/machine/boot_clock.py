"""A clock that goes on while the host is suspended. Python's `time.monotonic` stands still then on Linux."""

from __future__ import annotations

import time

_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def since_boot_ns() -> int:
    """Nanoseconds since some moment. Compare them only with others of the same host."""
    return time.monotonic_ns() if _CLOCK is None else time.clock_gettime_ns(_CLOCK)
