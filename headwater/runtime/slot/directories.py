"""Where the processes of a host find each other: directories of sockets that only this user can enter."""

from __future__ import annotations

import os
import stat
import tempfile

from headwater.runtime.slot.protocol import ConnectionLostError


def socket_directory(run_id: str) -> str:
    """The directory of a run's sockets. Short, because a Unix socket's path has at most 107 bytes."""
    return _private(os.path.join(own_directory(), run_id[:12]))


def own_directory() -> str:
    """The directory of all that this user runs on this host."""
    return _private(os.path.join(tempfile.gettempdir(), f"headwater-{os.getuid()}"))


def _private(directory: str) -> str:
    """`directory`, made if need be: only this user can enter it."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    status = os.lstat(directory)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ConnectionLostError(f"{directory} must be a directory that only user {os.getuid()} can enter; remove it")
    return directory
