"""Local recovery: copies of the snapshots that this machine wrote to a remote storage. A slot that restarts on the same
machine reads them instead of the remote files.

Readers check every byte of a copy and fall back to the storage at the first wrong one. So copies are not fsynced, and
anybody may delete them at any time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import xxhash

from headwater.checkpoint.storage.durable_file import TEMPORARY_SUFFIX
from headwater.common.trusted_directories import check_private, private_directory

_CURE = "remove it, or choose another execution.checkpointing.local-backup.dirs"

_YOUNG_SECONDS: Final = 60
"""A draft that is younger may not be locked yet."""


class LocalCopies:
    """One machine's copies of files in one checkpoint storage, shared by all its slots. Deletes the oldest first."""

    def __init__(self, directory: str | Path, url: str, max_bytes: int) -> None:
        self.directory = Path(directory).expanduser() / f"copies-{xxhash.xxh64_hexdigest(url.encode())}"
        self.max_bytes = max_bytes
        self._swept = False

    def draft(self) -> Path:
        """Where to write a file that `keep` will then take in, on the same file system."""
        private_directory(self.directory, _CURE)
        if not self._swept:
            self._swept = True
            self._remove_abandoned()
        return self.directory / f"{uuid.uuid4().hex}{TEMPORARY_SUFFIX}"

    @contextlib.contextmanager
    def writing(self, draft: Path) -> Iterator[BinaryIO]:
        """`draft`, open and locked, so that others see that somebody writes it. Gone at the end, unless it is kept."""
        try:
            with open(draft, "wb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                yield file
        finally:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)

    def _remove_abandoned(self) -> None:
        """Delete drafts whose writers were killed."""
        for entry in self._entries():
            with contextlib.suppress(OSError):
                if entry.name.endswith(TEMPORARY_SUFFIX) and time.time() - entry.stat().st_mtime > _YOUNG_SECONDS:
                    with open(entry.path, "rb") as file:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        os.unlink(entry.path)

    def holds(self, path: Path) -> bool:
        return path.parent == self.directory

    def keep(self, name: str, draft: Path) -> None:
        """Make `draft` the copy of `name`: it is renamed. Delete the oldest copies if there are too many bytes."""
        os.replace(draft, self._path(name))
        self._make_room()

    def find(self, name: str) -> Path | None:
        """Return the copy of `name`, if there is one. It then counts as the youngest copy."""
        path = self._path(name)
        try:
            os.utime(path)
        except OSError:
            return None
        check_private(self.directory, _CURE)
        return path

    def drop(self, name: str) -> None:
        """Delete the copy of `name`, because the storage no longer has the file."""
        with contextlib.suppress(OSError):
            self._path(name).unlink()

    def _path(self, name: str) -> Path:
        # Names are validated file names, unique among all directories of a storage.
        return self.directory / name.rpartition("/")[2]

    def _entries(self) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.directory) as found:
                return list(found)
        except OSError:
            return []

    def _make_room(self) -> None:
        sizes: list[tuple[float, int, str]] = []  # (time, bytes, path)
        for entry in self._entries():
            with contextlib.suppress(OSError):
                facts = entry.stat()
                sizes.append((facts.st_mtime, facts.st_size, entry.path))
        total = sum(size for _, size, _ in sizes)
        for _, size, path in sorted(sizes):
            if total <= self.max_bytes:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size
