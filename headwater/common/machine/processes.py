"""Other processes of this machine."""

from __future__ import annotations

import contextlib
import os


def alive(pid: int) -> bool:
    """Return True if process `pid` exists, of any user. Pids are reused: it may be another process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    return True


def open_pidfd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when process `pid` ends; None if the system has no pidfds."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None


def name_this_process(name: str) -> None:
    """Set the name that tools like `ps` show, at most 15 characters. Does nothing without /proc."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write(name)


def is_named(pid: int, name: str) -> bool:
    """Return True if process `pid` exists and called itself `name`."""
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip() == name
    except OSError:
        return False


def start_time(pid: int) -> str | None:
    """Return what distinguishes process `pid` from all others that had or will have this pid; None if it has ended.

    A zombie has ended. Made of the boot and of the time since then: it never repeats on one machine.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # the name before it may contain anything
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else f"{boot}/{int(fields[19])}"
