"""Where the RocksDB files of one process are, and who deletes them if the process is killed.

Each process makes a directory of its own (its home) in the configured directory, for all its databases, and holds a
lock (`flock`) on the file `OWNER` in it. The kernel releases the lock when the process ends, however it ends and in
whatever container it ran. So a home whose `OWNER` can be locked is abandoned: the next process that makes a home in the
same directory deletes it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Final

from headwater.common.machine.directories import remove_directory
from headwater.common.trusted_directories import make_directory

log = logging.getLogger(__name__)

_PREFIX: Final = "headwater-rocksdb-"
_OWNER: Final = "OWNER"

_homes: dict[Path, RocksDBHome] = {}
_lock = threading.RLock()


class RocksDBHome:
    """This process's directory within `parent`. It exists from the first database to the last one."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._path: Path | None = None
        self._descriptor: int | None = None
        self._databases = 0

    @property
    def path(self) -> Path:
        """A directory for files that need not outlive the process. `parent` while there is no database."""
        return self._parent if self._path is None else self._path

    def new_directory(self) -> Path:
        """Return a new empty directory for one database. Delete it with `remove`."""
        with _lock:
            self._databases += 1  # first: the garbage collector may call `remove` at any moment
            try:
                if self._path is None or not self._path.is_dir():
                    self._make()
                return Path(tempfile.mkdtemp(prefix="db-", dir=self._path))
            except BaseException:
                self._databases -= 1
                raise

    def remove(self, directory: Path) -> None:
        """Delete a database's directory. After the last one, delete the home too, unless it has other content."""
        shutil.rmtree(directory, ignore_errors=True)
        with _lock:
            self._databases -= 1
            if self._databases == 0 and self._path is not None and _nothing_in(self._path):
                self._leave()
                self._path = None

    def _make(self) -> None:
        make_directory(self._parent)
        remove_abandoned(self._parent)
        path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=self._parent))
        self._path, self._descriptor = path, _own(path)
        # Finalizers run in reverse order at the end of the process, so the databases are already closed.
        self._leave = weakref.finalize(self, _remove_own, path, self._descriptor, os.getpid())

    def forget_in_child(self) -> None:
        """Forget the directory in a forked child: it belongs to the parent process."""
        if self._path is not None:
            self._leave.detach()
            if self._descriptor is not None:
                os.close(self._descriptor)  # does not unlock: the parent process has the same open file


def home_in(parent: Path) -> RocksDBHome:
    """Return this process's home in `parent`."""
    with _lock:
        return _homes.setdefault(parent, RocksDBHome(parent))


def remove_abandoned(parent: Path) -> list[Path]:
    """Delete the homes in `parent` whose processes are gone, and return their paths. Never deletes a home in use.

    Homes of other users, homes without a lock (their file system has none) and homes that cannot be deleted stay.
    """
    removed = []
    for entry in list(os.scandir(parent)):
        try:
            if (
                entry.name.startswith(_PREFIX)
                and entry.is_dir(follow_symlinks=False)
                and entry.stat(follow_symlinks=False).st_uid == os.getuid()
                and _remove_if_abandoned(Path(entry.path))
            ):
                removed.append(Path(entry.path))
        except OSError as error:
            log.debug("%s of a process that is gone cannot be removed: %s", entry.path, error)
    return removed


def _remove_if_abandoned(home: Path) -> bool:
    owner = home / _OWNER
    try:
        descriptor = os.open(owner, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False  # another process is making or deleting it right now
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(descriptor), os.stat(owner)):
            return False
        remove_directory(home, last=_OWNER)
    except (BlockingIOError, FileNotFoundError):
        return False  # in use, or another process was faster
    finally:
        os.close(descriptor)
    log.info("%s was left by a process that was killed: removed", home)
    return True


def _own(home: Path) -> int | None:
    """Create and lock `OWNER`. The file gets its name only after it is locked. None: it cannot be locked."""
    draft = home / f"{_OWNER}.draft"
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        log.warning("%s cannot be locked (%s): it stays there if this process is killed", draft, error.strerror)
        os.close(descriptor)
        draft.unlink()
        return None
    os.rename(draft, home / _OWNER)
    return descriptor


def _nothing_in(home: Path) -> bool:
    try:
        return not set(os.listdir(home)) - {_OWNER}
    except FileNotFoundError:  # somebody else deleted it
        return True


def _remove_own(home: Path, descriptor: int | None, pid: int) -> None:
    if os.getpid() != pid:
        return
    try:
        remove_directory(home, last=_OWNER)
    except FileNotFoundError:
        pass
    except OSError as error:
        log.warning("%s cannot be removed: %s", home, error)
    if descriptor is not None:
        os.close(descriptor)


def _forget_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    for home in _homes.values():
        home.forget_in_child()
    _homes.clear()


os.register_at_fork(after_in_child=_forget_in_child)
