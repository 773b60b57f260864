"""How much of the time queries may take from the thread that processes."""

from __future__ import annotations

import threading
import time
from typing import Protocol

SHARE = 0.05
"""How much of one core queries may take while an epoch is under way, in all threads together."""
BURST_SECONDS = 0.1
"""So much processing is saved up for queries that come at once."""
LONGEST_REST = 0.02
"""Queries rest at most so long: on a shared core, processing might never catch up with what it is owed."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.01


class Processing(Protocol):
    """What must be known of a slot."""

    processing: bool
    """An epoch is under way."""


class Share:
    """Keeps the work of all threads that answer queries within a share of the time, while the slot processes.

    It counts processor time, that of queries and that of the thread that processes: on a busy machine the clock says
    nothing. While queries are within their share, `breathe` does nothing that lets Python's lock go: on a busy slot it
    would get it back only after a switch interval.
    """

    def __init__(self, slot: Processing, share: float = SHARE) -> None:
        self._slot = slot
        self._rest = 1 / share - 1
        main = threading.main_thread()
        self._main_clock = time.pthread_getcpuclockid(main.ident) if main.ident is not None else None
        self._main_stat = f"/proc/self/task/{main.native_id}/stat"
        self._lock = threading.Lock()
        self._owed = 0.0
        """Seconds of processing that are due before the next query; below zero: that were saved up."""
        self._main_mark = self._main_time()
        self._own = threading.local()
        self._allowed_at = 0.0

    def begin(self) -> None:
        """Count what this thread does from now on. Called once by each thread that will `breathe`."""
        self._own.mark = time.thread_time()

    def breathe(self) -> None:
        """Rest until the processing thread, which never calls this, had its part of the time, or does not need it."""
        now = time.thread_time()
        owed = self._settle(now - self._own.mark)
        self._own.mark = now
        until = time.monotonic() + LONGEST_REST
        while owed > 0:
            if not self._slot.processing or time.monotonic() >= until:
                self._forgive()
                return
            time.sleep(min(max(owed, _SHORTEST_PAUSE), _LONGEST_PAUSE))
            before, owed = owed, self._settle(0.0)
            if owed > before - _SHORTEST_PAUSE / 2 and not self._main_is_at_work():
                self._forgive()
                return

    def allows(self) -> bool:
        """Return True if the processing thread itself may answer queries now. It says with `bill` what they took."""
        now = time.monotonic()
        if self._settle(0.0) > 0 and now - self._allowed_at < LONGEST_REST:
            return False
        self._allowed_at = now
        return True

    def bill(self, seconds: float) -> None:
        """The processing thread has answered queries for so long."""
        self._settle(seconds, seconds)

    def _settle(self, used: float, of_main: float = 0.0) -> float:
        """Count what queries `used`, and what the processing thread has had since the last call. Return what is owed.

        `of_main`: the part of its time that was not processing.
        """
        with self._lock:
            main = self._main_time()
            owed = self._owed + used * self._rest - (main - self._main_mark - of_main)
            self._owed = min(max(owed, -BURST_SECONDS), LONGEST_REST)
            self._main_mark = main
            return self._owed

    def _forgive(self) -> None:
        with self._lock:
            self._owed = min(self._owed, 0.0)

    def _main_time(self) -> float:
        return time.clock_gettime(self._main_clock) if self._main_clock is not None else time.monotonic()

    def _main_is_at_work(self) -> bool:
        """Return False if the thread sleeps: it waits for input, or for the disk."""
        try:
            with open(self._main_stat, "rb") as file:
                return file.read().rpartition(b")")[2].split()[0] == b"R"
        except (OSError, IndexError):
            return True
