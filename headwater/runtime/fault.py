"""Faults on request, for tests: kill a process at a named step of a named epoch, once.

A schedule is a directory given by the environment variable ``HEADWATER_FAULTS``. It holds one empty file per fault,
named ``<step>@<epoch>@<victim>``. Whoever reaches the step of that epoch first renames the file to ``*.fired`` (so that
a fault fires once, whatever is retried) and sends SIGKILL to the victim: ``slot``, ``worker`` or ``driver``.
Without the variable, a step only reads a module constant.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

SCHEDULE = os.environ.get("HEADWATER_FAULTS")

STEPS = (
    "chunk-received",
    "mid-chunk",
    "processed",
    "snapshot-written",
    "acked",
    "manifest-written",
    "sink-committed",
)
"""The named steps of an epoch, in order."""


def reached(step: str, epoch: int, victims: Mapping[str, int]) -> None:
    """Called by the engine at each step. `victims` has the pids that this process knows, by role."""
    if SCHEDULE is None:
        return
    for victim, pid in victims.items():
        planned = os.path.join(SCHEDULE, f"{step}@{epoch}@{victim}")
        try:
            os.rename(planned, planned + ".fired")
        except OSError:
            continue
        os.kill(pid, signal.SIGKILL)
