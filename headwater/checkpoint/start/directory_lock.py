"""One job per checkpoint directory.

The lock is `flock` on `<root>/LOCK`. The kernel releases it when the process ends, however it ends, so there are no
stale locks to clean up. The file's content only tells a second job who holds the lock.

An object store has no locks. There the last job to start owns the directory, and every earlier job is fenced
(claims.py). The same holds for a local directory whose lock was lost.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
import weakref
from dataclasses import asdict, dataclass
from types import TracebackType

from headwater.checkpoint.paths import CheckpointLayout
from headwater.common.errors import CheckpointError, JobInUseError
from headwater.common.machine.processes import alive

_held: weakref.WeakSet[DirectoryLock] = weakref.WeakSet()


@dataclass(frozen=True)
class LockOwner:
    """Who holds a checkpoint directory."""

    pid: int
    host: str
    started: str
    job_name: str


DEAD_OWNER_SECONDS = 5
"""How long to wait for a lock whose owner is dead: a child that it just forked may not have closed the lock yet."""


class DirectoryLock:
    """Locks a checkpoint directory for this process, from `acquire` to `release` or to the end of the process.

    Child processes do not hold the lock: its descriptor is closed on exec and, by a hook, after fork. Otherwise a slot
    that outlives its driver would lock out the next driver.
    """

    def __init__(self, layout: CheckpointLayout, job_name: str) -> None:
        self._layout = layout
        self._job_name = job_name
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def acquire(self) -> None:
        """Lock the directory, or raise JobInUseError that names the pid and host of the job that uses it.

        Does nothing if the directory is not a local one.
        """
        if self.held or not self._layout.is_local:
            return
        self._layout.create()
        path = self._layout.lock
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise CheckpointError(f"lock file {path} cannot be opened: {error.strerror}") from error
        try:
            _flock(descriptor)
        except OSError as error:
            owner = _read_owner(descriptor)
            os.close(descriptor)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise CheckpointError(
                    f"lock file {path} cannot be locked: {error.strerror}; the checkpoint directory must be on a file "
                    "system with flock"
                ) from error
            raise JobInUseError(self._refusal(owner)) from None
        started = time.strftime("%Y-%m-%d %H:%M:%S %z")
        content = json.dumps(asdict(LockOwner(os.getpid(), socket.gethostname(), started, self._job_name)))
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, content.encode(), 0)
        self._descriptor = descriptor
        _held.add(self)

    def release(self) -> None:
        """Unlock the directory. The file stays: deleting it would race with a job that is opening it."""
        if self._descriptor is None:
            return
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
        self._descriptor = None
        _held.discard(self)

    def __enter__(self) -> DirectoryLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _refusal(self, owner: LockOwner | None) -> str:
        if owner is None:
            who = "another job, which has just started"
        else:
            who = f"job '{owner.job_name}', pid {owner.pid} on host {owner.host}, started {owner.started}"
        return (
            f"checkpoint directory {self._layout.root} is in use by {who}; stop that job, or give this one another "
            "directory with execution.checkpointing.dir"
        )

    def _forget_in_child(self) -> None:
        # Closing the child's copy does not unlock: the parent's descriptor refers to the same open file.
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def in_use(layout: CheckpointLayout) -> bool:
    """Return True if a job may be running in the directory. Always False for a remote directory: it has no lock.

    Reads the owner but does not take the lock: a job that starts at this moment must find the lock free.
    """
    if not layout.is_local:
        return False
    try:
        descriptor = os.open(layout.lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        owner = _read_owner(descriptor)
    finally:
        os.close(descriptor)
    return owner is not None and (owner.host != socket.gethostname() or alive(owner.pid))


def _flock(descriptor: int) -> None:
    """Lock without waiting, unless the owner is dead: a child that it just forked may hold the lock a moment longer."""
    deadline = time.monotonic() + DEAD_OWNER_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            owner = _read_owner(descriptor)
            dead = owner is not None and owner.host == socket.gethostname() and not alive(owner.pid)
            if not dead or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _read_owner(descriptor: int) -> LockOwner | None:
    try:
        return LockOwner(**json.loads(os.pread(descriptor, 65_536, 0)))
    except (ValueError, TypeError):
        return None  # the owner is writing it right now


def _close_in_child() -> None:
    for lock in list(_held):
        lock._forget_in_child()
    _held.clear()


os.register_at_fork(after_in_child=_close_in_child)
