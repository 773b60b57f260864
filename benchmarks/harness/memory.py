"""Memory of the slots, measured from outside.

A program's keyed function leaves a `slot` stamp from its `open`, so the harness knows which processes own state without
knowing how they are started. Children of a slot (a forked snapshot writer) are counted with it. The measure is PSS:
pages shared between forked processes count once in the sum.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from benchmarks.workload import StampDir

SAMPLE_INTERVAL_S = 0.2
MEGABYTE = 1_000_000


def pss_bytes(pid: int) -> int:
    """Proportional set size of one process; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 0


def children_of(pid: int) -> list[int]:
    """Direct children of all threads of `pid`."""
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text(encoding="ascii").split()]
    except OSError:
        pass
    return found


def tree_pss_bytes(pids: set[int]) -> int:
    """PSS over `pids` and all their descendants, each counted once."""
    seen: set[int] = set()
    todo = list(pids)
    while todo:
        pid = todo.pop()
        if pid not in seen:
            seen.add(pid)
            todo += children_of(pid)
    return sum(pss_bytes(pid) for pid in seen)


class SlotMemory(threading.Thread):
    """Samples the slots' memory until told to stop."""

    def __init__(self, stamps: Path) -> None:
        super().__init__(daemon=True)
        self._stamps = StampDir(stamps)
        self._stop_requested = threading.Event()
        self._peak = 0
        self._at_mark = 0
        self._slots = 0

    def run(self) -> None:
        while not self._stop_requested.wait(SAMPLE_INTERVAL_S):
            pids = {int(stamp["pid"]) for stamp in self._stamps.read("slot")}
            now = tree_pss_bytes(pids)
            self._slots = max(self._slots, len(pids))
            self._peak = max(self._peak, now)
            if now and self._stamps.read("loaded"):
                self._at_mark = now

    def stop(self) -> None:
        self._stop_requested.set()
        self.join(timeout=10)

    def facts(self) -> dict[str, Any]:
        return {
            "slots": self._slots,
            "peak_mb": round(self._peak / MEGABYTE, 1),
            "loaded_mb": round(self._at_mark / MEGABYTE, 1),
        }
