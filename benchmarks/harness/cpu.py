"""Processor time of all processes of a job, whoever their parent is.

A program marks its environment before it starts anything. Whatever comes of it inherits the mark: the JVM, Spark's
workers, the fork server, and slots, which leave their session and their parent.
"""

from __future__ import annotations

import os
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
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0.0
    own_and_children = stat.rpartition(")")[2].split()[11:15]  # utime, stime, cutime, cstime
    return sum(map(int, own_and_children)) * _TICK_S


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
