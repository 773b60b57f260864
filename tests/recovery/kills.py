"""Kills a process at a named step of a named epoch, once: the hook that jobs of these tests install.

A schedule is a directory, given by the environment variable RECOVERY_TEST_FAULTS. It holds one empty file per fault,
named ``<step>@<epoch>@<victim>``, or ``<step>@any@<victim>``. Whoever reaches the step of that epoch first renames the
file to ``*.fired`` (so that a fault fires once, whatever is retried) and sends SIGKILL to the victim: ``slot``,
``worker`` or ``driver``.

The job's module installs the hook in every process that imports it. Each such process leaves its pid and the time of
its start in the directory (another process may have the pid later), so that the others find it; a slot finds the relay
that it serves by its connection.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
from itertools import product
from pathlib import Path

from headwater.common.machine.processes import alive, is_named
from headwater.runtime.epoch import fault
from headwater.runtime.slot.process import PROCESS_NAME
from headwater.runtime.stage.runner import StageRunner
from tests.halved_batches import halved

VARIABLE = "RECOVERY_TEST_FAULTS"
ANY = "any"
"""Instead of an epoch: the first one that reaches the step."""
DRIVER = "RECOVERY_TEST_DRIVER"
"""Environment variable with the driver's pid: all processes of its run inherit it."""


def install() -> None:
    """Kill as the environment says, in this process."""
    if VARIABLE in os.environ and fault.hook is not reached:
        fault.hook = reached
        StageRunner.batch = halved(StageRunner.batch)  # type: ignore[method-assign]
        (_pids() / f"{os.getpid()}-{_started(os.getpid())}").touch()


def this_is_the_driver() -> None:
    """Call it before the driver starts any other process."""
    os.environ[DRIVER] = str(os.getpid())


def reached(step: str, epoch: int) -> None:
    for when, (victim, find) in product((epoch, ANY), _VICTIMS.items()):
        planned = Path(os.environ[VARIABLE]) / f"{step}@{when}@{victim}"
        if not planned.exists() or (pid := find()) is None:
            continue
        with contextlib.suppress(FileNotFoundError):  # another process was faster
            planned.rename(f"{planned}.fired")
            os.kill(pid, signal.SIGKILL)


def _pids() -> Path:
    directory = Path(os.environ[VARIABLE]) / "pids"
    directory.mkdir(exist_ok=True)
    return directory


def _is_slot(pid: int) -> bool:
    return is_named(pid, PROCESS_NAME)


def _living() -> list[int]:
    """Processes of the newest driver's run that have the hook, the oldest first."""
    files = sorted(_pids().iterdir(), key=lambda file: file.stat().st_mtime)
    processes = [tuple(map(int, file.name.split("-"))) for file in files]
    return [pid for pid, started in processes if _started(pid) == started and _driver_of(pid) == _driver()]


def _started(pid: int) -> int | None:
    """When a process started, in ticks since the machine did; None if there is no such process."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return None


def _driver_of(pid: int) -> int | None:
    """Whose run a process belongs to, from the environment that it was started with."""
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if entry.startswith(f"{DRIVER}=".encode()):
                return int(entry.partition(b"=")[2])
    return None


def _driver() -> int:
    return int(os.environ[DRIVER])


def _slot() -> int | None:
    if _is_slot(os.getpid()):
        return os.getpid()
    return next((pid for pid in _living() if _is_slot(pid)), None)


def _worker() -> int | None:
    if _is_slot(os.getpid()):
        return _relay()
    if os.getpid() != _driver():
        return os.getpid()
    return next((pid for pid in _living() if pid != _driver() and not _is_slot(pid)), None)


def _relay() -> int | None:
    """The process at the other end of this slot's Unix connection."""
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(entry))) as sock:
            if sock.family == socket.AF_UNIX and not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
                pid: int = struct.unpack("3i", credentials)[0]
                if pid not in (0, os.getpid(), _driver()) and alive(pid):
                    return pid
    return None


_VICTIMS = {"slot": _slot, "worker": _worker, "driver": _driver}
