"""Ends quietly, without a traceback, when the reader of our output has left, as `head` does."""

from __future__ import annotations

import os
import select
import sys

BROKEN_PIPE = 141
"""The exit code of a program that the kernel ends for this reason."""


def nobody_reads() -> bool:
    """Return True if standard output is a pipe whose reader is gone."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (OSError, ValueError, AttributeError):  # no descriptor behind it
        return False


def leave_quietly() -> int:
    """Drop what is still to be written, and return the exit code."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return BROKEN_PIPE
