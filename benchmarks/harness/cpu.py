"""Processor time of all processes of a job, whoever their parent is.

A program marks its environment before it starts anything. Whatever comes of it inherits the mark: the JVM, Spark's
workers, the fork server, and slots, which leave their session and their parent.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Collection
from pathlib import Path

MARK = "HEADWATER_BENCH_JOB"
KINDS = ("driver", "jvm", "workers", "slots")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def mark_processes() -> str:
    """Mark this process's environment, and return the mark."""
    os.environ[MARK] = uuid.uuid4().hex
    return os.environ[MARK]


def marked_processes(mark: str) -> list[int]:
    """The processes that were started since `mark_processes`, and this one."""
    wanted = f"{MARK}={mark}".encode()
    found = [os.getpid()]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and wanted in _environment(entry):
            found.append(int(entry.name))
    return found


def cpu_seconds(pid: int) -> float:
    """Of a process and of its children that are gone; 0 if it is gone itself."""
    return sum(_times(pid)) * _TICK_S


def _own_cpu_seconds(pid: int) -> float:
    return sum(_times(pid)[:2]) * _TICK_S


def _times(pid: int) -> list[int]:
    """utime, stime, cutime, cstime; nothing if the process is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return list(map(int, stat.rpartition(")")[2].split()[11:15]))


class CpuWatch(threading.Thread):
    """Adds up the processor time of marked processes, also of those that end meanwhile, by looking at them often.

    What a process did after the last look at it is lost: `EVERY_S` at most.
    """

    EVERY_S = 0.1

    def __init__(self, mark: str) -> None:
        super().__init__(daemon=True)
        self._mark = mark
        self._seen: dict[int, float] = {}
        self._before: dict[int, float] = {}
        self._stopped = threading.Event()

    def __enter__(self) -> CpuWatch:
        self._look()
        self._before = dict(self._seen)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self.join()
        self._look()

    @property
    def seconds(self) -> float:
        """Of all processes together, since the watch began."""
        return sum(spent - self._before.get(pid, 0.0) for pid, spent in self._seen.items())

    def run(self) -> None:
        while not self._stopped.wait(self.EVERY_S):
            self._look()

    def _look(self) -> None:
        for pid in marked_processes(self._mark):
            self._seen[pid] = max(_own_cpu_seconds(pid), self._seen.get(pid, 0.0))


def cpu_by_kind(mark: str, slots: Collection[int]) -> dict[str, float]:
    """Seconds so far of the driver, the JVM, the slots, and the workers (which is all the rest)."""
    seconds = dict.fromkeys(KINDS, 0.0)
    for pid in marked_processes(mark):
        seconds[_kind(pid, slots)] += cpu_seconds(pid)
    return seconds


def _kind(pid: int, slots: Collection[int]) -> str:
    if pid == os.getpid():
        return "driver"
    if pid in slots:
        return "slots"
    return "jvm" if _command(pid) == "java" else "workers"


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _environment(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []
