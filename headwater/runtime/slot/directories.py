"""Where the processes of a host find each other: directories of sockets that only this user can enter."""

from __future__ import annotations

import os
import tempfile

from headwater.common.trusted_directories import private_directory


def socket_directory(run_id: str) -> str:
    """Return the directory of a run's sockets. Its name is short: a Unix socket's path has at most 107 bytes."""
    return _private(os.path.join(own_directory(), run_id[:12]))


def query_directory(run_id: str) -> str:
    """Return the directory of the sockets on which a run's slots answer queries."""
    return _private(os.path.join(own_directory(), f"{run_id[:12]}q"))


def own_directory() -> str:
    """The directory of all that this user runs on this host."""
    return _private(os.path.join(tempfile.gettempdir(), f"headwater-{os.geteuid()}"))


def _private(directory: str) -> str:
    private_directory(directory, "remove it, or let the environment variable TMPDIR be a directory of your own")
    return directory
