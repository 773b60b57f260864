"""Other processes of this machine."""

from __future__ import annotations

import contextlib
import os


def alive(pid: int) -> bool:
    """Whether process `pid` is there, whoever's it is. A number is used again: it may be another process by now."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    return True


def open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when process `pid` ends; None where the system has none."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None


def name_this_process(name: str) -> None:
    """What tools like `ps` show as the command of this process: at most 15 characters. Where there is /proc."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write(name)


def is_named(pid: int, name: str) -> bool:
    """Whether process `pid` is there and has called itself `name`."""
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip() == name
    except OSError:
        return False
