"""What takes the place of `kill -9` where everything is in one process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

_thread = threading.local()


class Killed(BaseException):
    """All processes of the job end here. Not an `Exception`, so that no handler of errors goes on."""


class ReaderKilled(Killed):
    """Only the process that reads a source ends: the attempt is lost, the job is not."""


@contextlib.contextmanager
def attempt_in_this_process() -> Iterator[None]:
    """Within the block, this thread runs an attempt of the in-process engine."""
    _thread.runs = True
    try:
        yield
    finally:
        _thread.runs = False


def is_in_process() -> bool:
    """Return True if the caller must not kill its process: the whole job, and the test, is in it."""
    return getattr(_thread, "runs", False)
