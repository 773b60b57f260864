"""Kills a process that gives no sign of life. A script, so that it starts fast and stays small.

A sign of life is a byte on standard input, which a thread of the watched process sends, or processor time that the
process has used. A process that waits sends bytes, one that computes uses time: both may take as long as they like.
Only a process that is stopped, or hangs with all its threads, gives neither.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import NamedTuple

LOOKS = 5
"""How often the watchdog looks within the allowed time. It counts looks, not seconds: while the machine sleeps, or is
too busy, neither the watchdog nor the process runs."""

NAME = "headwater-watch"
_STOPPED, _TRACED = "T", "t"


class Facts(NamedTuple):
    """What /proc says about a process."""

    state: str
    parent: int
    ticks: int
    """Processor time used."""
    started: int
    """Tells the process from a later one with the same pid."""


def facts_of(pid: int) -> Facts | None:
    """Return what /proc says; None if there is no such process, or no /proc."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return Facts(fields[0], int(fields[1]), int(fields[11]) + int(fields[12]), int(fields[19]))


def watch(pid: int, seconds: float, beats: int) -> None:
    """Watch process `pid` until it ends. Kill it after `seconds` without a sign of life."""
    first = facts_of(pid)
    if first is None:
        return
    os.set_blocking(beats, False)
    daemon = _pyspark_daemon(first.parent)
    ticks, silent, stopped = first.ticks, 0, 0
    while True:
        time.sleep(seconds / LOOKS)
        beaten, now = _beaten(beats), facts_of(pid)
        if beaten is None or now is None or now.started != first.started:
            return
        alive = beaten or now.ticks != ticks or now.state == _TRACED  # in a debugger it may be silent
        ticks, silent = now.ticks, 0 if alive else silent + 1
        stopped = stopped + 1 if daemon is not None and _is_stopped(*daemon) else 0
        if daemon is not None and stopped >= LOOKS:
            _kill(daemon[0], "the process that Spark forks Python workers from", seconds, "stopped")
            daemon = None
        if silent >= LOOKS:
            _kill(pid, "Python worker", seconds, "stopped" if now.state == _STOPPED else "hangs")
            return


def _beaten(beats: int) -> bool | None:
    """Return True if a byte came since the last look; None if none can come any more."""
    try:
        return bool(os.read(beats, 1 << 16)) or None
    except BlockingIOError:
        return False


def _pyspark_daemon(pid: int) -> tuple[int, int] | None:
    """Return (pid, start) of the daemon that forked a worker: while it is stopped, Spark gets no new worker."""
    facts = facts_of(pid)
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            is_daemon = b"pyspark.daemon" in file.read().split(b"\0")
    except OSError:
        return None
    return (pid, facts.started) if facts is not None and is_daemon else None


def _is_stopped(pid: int, started: int) -> bool:
    facts = facts_of(pid)
    return facts is not None and facts.started == started and facts.state == _STOPPED


def _kill(pid: int, what: str, seconds: float, why: str) -> None:
    because = "it hangs" if why == "hangs" else "it is stopped"
    text = f"headwater: {what} {pid} gave no sign of life for {seconds:g} s ({because}); it is killed, and replaced\n"
    try:
        os.write(2, text.encode())
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def main() -> None:
    """Watch the process with pid `argv[1]`, with a limit of `argv[2]` seconds."""
    if os.fork():
        os._exit(0)  # no longer a child of the watched process: whoever kills that tree spares us
    os.setsid()
    try:
        with open("/proc/self/comm", "w") as file:
            file.write(NAME)
    except OSError:
        pass
    watch(int(sys.argv[1]), float(sys.argv[2]), 0)


if __name__ == "__main__":
    main()
