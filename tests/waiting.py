"""Waits for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T], what: str | Callable[[], str] = "it", seconds: float = 60, poll_s: float = 0.01
) -> T:
    """Poll until `condition` holds, and return it. If it does not in time, the test fails, and says for `what` it
    waited."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s for {what if isinstance(what, str) else what()}")
        time.sleep(poll_s)
    return found
