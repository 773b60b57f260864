"""Waits for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(
    condition: Callable[[], bool], what: str | Callable[[], str] = "it", seconds: float = 60, poll_s: float = 0.01
) -> None:
    """Poll until `condition` holds. If it does not in time, the test fails, and says for `what` it waited."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s for {what if isinstance(what, str) else what()}")
        time.sleep(poll_s)
