"""Full snapshots. A forked child writes one from a frozen copy of the slot's memory while the slot works on."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.common.config_options import CHECKPOINTING_TIMEOUT
from headwater.common.errors import CheckpointError
from headwater.common.machine.descriptors import wait_any

log = logging.getLogger(__name__)

MAX_DELTAS = 40
"""A restore reads about this many deltas at most."""

MIN_DELTA_BYTES = 1 << 20
_PR_SET_PDEATHSIG = 1


def full_snapshot_is_due(chain: Sequence[SnapshotRef]) -> bool:
    """Return True if enough deltas have piled up that a full snapshot is worth its cost.

    That is: the deltas since the last full (or native) snapshot are larger than it, or they are too many. So a restore
    reads at most twice the state, and full snapshots cost at most as much as the deltas.
    """
    full = sum(ref.total_bytes for ref in chain if ref.kind != "delta")
    deltas = [ref.length for ref in chain if ref.kind == "delta"]
    return len(deltas) >= MAX_DELTAS or (len(deltas) > 4 and sum(deltas) > max(full, MIN_DELTA_BYTES))


def warn_of_failure(kind: str, error: BaseException) -> None:
    """Log that a snapshot could not be written. A known error (a full disk, say) needs no traceback."""
    known = isinstance(error, CheckpointError)
    log.warning("writing a %s snapshot failed; deltas go on: %s", kind, error, exc_info=None if known else error)


def warn_of_time_limit(kind: str, where: str, seconds: float, deltas: int) -> None:
    """Say that a snapshot takes too long: it is given up, and deltas pile up until another one is written."""
    log.warning(
        "a %s snapshot of %s was not written within %g s, which is %s; it is given up, and another is begun. Until "
        "one is written, deltas pile up (%d now), and a restore reads all of them. See whether the store hangs, or is "
        "too slow for the state: then raise that setting",
        kind, where, seconds, CHECKPOINTING_TIMEOUT.key, deltas,
    )  # fmt: skip


class FullSnapshot(Protocol):
    """A snapshot that is being written while the slot works on."""

    kind: str

    @property
    def names(self) -> tuple[str, ...]:
        """The files that are being written."""
        ...

    def done(self) -> bool:
        """Return True if `result` will not block."""
        ...

    def result(self) -> SnapshotRef | None:
        """Return the snapshot, or None if it could not be written. Call once, when `done`."""
        ...

    def kill(self) -> None:
        """Nobody wants the snapshot any more. What was written is garbage."""
        ...


class FullSnapshotChild:
    """A forked process that writes one full snapshot and reports its reference through a pipe."""

    kind = "full"

    def __init__(self, name: str, pid: int, pipe: int) -> None:
        self.names = (name,)
        """The files that the child writes."""
        self._pid = pid
        self._pipe = pipe

    @classmethod
    def start(cls, name: str, write: Callable[[], SnapshotRef]) -> FullSnapshotChild:
        """Fork. Call it between epochs on the processing thread, when the state is that of a checkpoint's epoch."""
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                os.nice(5)
                os.close(read_end)
                os.write(write_end, pickle.dumps(write()))
                status = 0
            except BaseException as error:
                warn_of_failure("full", error)
            finally:
                os._exit(status)
        os.close(write_end)
        return cls(name, pid, read_end)

    def done(self) -> bool:
        """Return True if `result` will not block."""
        return bool(wait_any([self._pipe], 0))

    def result(self) -> SnapshotRef | None:
        """Return the snapshot, or None if the child failed. Call once, when `done`."""
        data = os.read(self._pipe, 65536)
        os.close(self._pipe)
        os.waitpid(self._pid, 0)
        ref: SnapshotRef | None = pickle.loads(data) if data else None
        return ref

    def kill(self) -> None:
        """Nobody wants the snapshot any more. What was written is garbage."""
        os.close(self._pipe)
        with contextlib.suppress(OSError):
            os.kill(self._pid, signal.SIGKILL)
        # One that hangs inside the kernel, on a network's disk, does not die at once: the slot must not wait for it.
        threading.Thread(target=_reap, args=(self._pid,), name="reap", daemon=True).start()


def _reap(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.waitpid(pid, 0)
