"""How long the operators of each vertex have been at work in this epoch, and what it cost the machine."""

from __future__ import annotations

import resource
from time import perf_counter

from headwater.runtime.epoch.figures import Figures


class BusyTime:
    """A stopwatch with one account per vertex, named by its head. Not thread safe; used by the processing thread only.

    At any moment one vertex is at work, or none. Called per batch and per watermark, never per record.
    """

    __slots__ = ("_blocked", "_seconds", "_since", "_usage", "_vertex")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """An epoch, or the next split of one, begins: nobody is at work."""
        self._seconds: dict[str, float] = {}
        self._blocked = 0.0
        self._vertex: str | None = None
        self._since = 0.0
        self._usage = resource.getrusage(resource.RUSAGE_THREAD)

    def enter(self, vertex: str | None) -> str | None:
        """`vertex` is at work from now on; None: nobody. Return who was before."""
        now, before = perf_counter(), self._vertex
        if before is not None:
            self._seconds[before] = self._seconds.get(before, 0.0) + now - self._since
        self._vertex, self._since = vertex, now
        return before

    def leave_uncounted(self) -> None:
        """Nobody is at work, and the last one only looked for work: that time is not counted."""
        self._vertex = None

    def blocked(self, seconds: float) -> None:
        """The vertex at work has waited for so long until its output was taken."""
        self._blocked += seconds
        if self._vertex is not None:
            self._seconds[self._vertex] = self._seconds.get(self._vertex, 0.0) - seconds

    def end(self, figures: Figures) -> None:
        """Enter what was measured since `begin`."""
        before, now = self._usage, resource.getrusage(resource.RUSAGE_THREAD)
        figures.busy_ms = {vertex: seconds * 1000 for vertex, seconds in self._seconds.items()}
        figures.blocked_ms = self._blocked * 1000
        figures.cpu_ms = (now.ru_utime - before.ru_utime + now.ru_stime - before.ru_stime) * 1000
        figures.major_faults = now.ru_majflt - before.ru_majflt
        figures.preempted = now.ru_nivcsw - before.ru_nivcsw
