"""How Spark's JVMs and their Python workers reach each other.

By Unix sockets a small epoch takes little more than half the time, but Spark puts them into the common temporary
directory and asks nobody who connects for a secret: it relies on the file's mode, which the umask makes. So they get a
directory that only this user can enter. On the hosts of a cluster there is nobody who could make one, and workers are
reached the way Spark does by default: at a port of the loopback interface, with a secret.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from headwater.common.advice import warn_user
from headwater.common.trusted_directories import check_private
from headwater.runtime.slot.directories import own_directory

ENABLED = "spark.python.unix.domain.socket.enabled"
DIRECTORY = "spark.python.unix.domain.socket.dir"
LONGEST = 61
"""Spark takes no longer path."""
_PREFIX = "py-"


def socket_settings(on_this_host: bool, given: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings about them, as far as `given` leaves them open. `on_this_host`: all executors are."""
    if DIRECTORY in given:
        if on_this_host:
            check_private(Path(given[DIRECTORY]), f"make it so (chmod 700), or leave {DIRECTORY} to headwater")
        return {ENABLED: "true"}
    if not on_this_host:
        if given.get(ENABLED) == "true":
            warn_user(
                f"{ENABLED} is set without {DIRECTORY}: on the cluster's hosts Python workers listen in the common "
                f"temporary directory, without a secret. Let {DIRECTORY} be a directory that only the executors' user "
                "can enter, on every host"
            )
        return {ENABLED: "false"}
    directory = _directory_of_this_process()
    return {ENABLED: "true", DIRECTORY: directory} if len(directory) <= LONGEST else {ENABLED: "false"}


@cache
def _directory_of_this_process() -> str:
    """Removed at the end of the process or, if it is killed, by the next one that makes its own.

    The process holds a lock on its directory, which the kernel lets go of however it ends.
    """
    parent = own_directory()
    mutex = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(mutex, fcntl.LOCK_EX)  # nobody may remove what is made here before it is locked
        _remove_abandoned(parent)
        directory = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        fcntl.flock(os.open(directory, os.O_RDONLY | os.O_DIRECTORY), fcntl.LOCK_EX)
    finally:
        os.close(mutex)
    atexit.register(_remove, directory, os.getpid())
    return directory


def _remove_abandoned(parent: str) -> None:
    for entry in list(os.scandir(parent)):
        if not entry.name.startswith(_PREFIX) or not entry.is_dir(follow_symlinks=False):
            continue
        descriptor = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(entry.path, ignore_errors=True)
        except BlockingIOError:
            pass  # in use
        finally:
            os.close(descriptor)


def _remove(directory: str, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(directory, ignore_errors=True)
