"""Ends a process that gives no sign of life: run as a script, so that it is there in no time and small.

A sign of life is a byte on the standard input, which a thread of the watched process sends, or processor time that the
process has used. One that waits sends, one that computes uses: whatever it does, it may take as long as it likes. Only
one that is stopped, or hangs with all its threads, does neither.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import NamedTuple

LOOKS = 5
"""So often in the time that is given does the watchdog look. It counts looks, not seconds: a machine that slept, or was
too busy for the watchdog, was so for the process as well."""

NAME = "headwater-watch"
_STOPPED, _TRACED = "T", "t"


class Facts(NamedTuple):
    """What /proc says about a process."""

    state: str
    parent: int
    ticks: int
    """Processor time that it has used."""
    started: int
    """Tells it from another one with the same number."""


def facts_of(pid: int) -> Facts | None:
    """None: there is no such process, or no /proc."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return Facts(fields[0], int(fields[1]), int(fields[11]) + int(fields[12]), int(fields[19]))


def watch(pid: int, seconds: float, beats: int) -> None:
    """Until process `pid` is gone, or is killed because it has given no sign of life for `seconds`."""
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
        alive = beaten or now.ticks != ticks or now.state == _TRACED  # in a debugger it may be as quiet as it likes
        ticks, silent = now.ticks, 0 if alive else silent + 1
        stopped = stopped + 1 if daemon is not None and _is_stopped(*daemon) else 0
        if daemon is not None and stopped >= LOOKS:
            _kill(daemon[0], "the process that Spark forks Python workers from", seconds, "stopped")
            daemon = None
        if silent >= LOOKS:
            _kill(pid, "Python worker", seconds, "stopped" if now.state == _STOPPED else "hangs")
            return


def _beaten(beats: int) -> bool | None:
    """Whether a byte has come since the last look; None: none will come any more."""
    try:
        return bool(os.read(beats, 1 << 16)) or None
    except BlockingIOError:
        return False


def _pyspark_daemon(pid: int) -> tuple[int, int] | None:
    """(pid, start) of the daemon whose fork a worker is: stopped, it would give Spark no worker any more."""
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
    """Watch the process of the first argument, with as many seconds as the second says."""
    if os.fork():
        os._exit(0)  # no child of the process that it watches: what stops or ends that one's tree leaves it alone
    os.setsid()
    try:
        with open("/proc/self/comm", "w") as file:
            file.write(NAME)
    except OSError:
        pass
    watch(int(sys.argv[1]), float(sys.argv[2]), 0)


if __name__ == "__main__":
    main()
