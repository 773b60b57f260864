"""Waits for file descriptors."""

from __future__ import annotations

import select
from collections.abc import Iterable


def wait_any(descriptors: Iterable[int], seconds: float) -> set[int]:
    """Return those that can be read, or whose other end is gone, as soon as there are any; none after `seconds`.

    Unlike `select`, it takes descriptors from 1,024 on: a driver may have many files open.
    """
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(max(0.0, seconds) * 1000)}
