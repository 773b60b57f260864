"""Local recovery: snapshots that this machine wrote to a remote storage, kept here so that a slot that starts again on
its host need not fetch them.

A copy is a convenience and never the truth: readers check every byte they use against the manifest, and go to the
storage from the first one that is wrong. So copies are not fsynced, and anybody may delete them at any time.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

import xxhash

from headwater.checkpoint.storage.durable_file import TEMPORARY_SUFFIX
from headwater.common.trusted_directories import check_private, private_directory

_CURE = "remove it, or choose another execution.checkpointing.local-backup.dirs"


class LocalCopies:
    """The copies of one checkpoint storage on one machine, shared by all slots on it. Bounded: the oldest go first."""

    def __init__(self, directory: str | Path, url: str, max_bytes: int) -> None:
        self.directory = Path(directory).expanduser() / f"copies-{xxhash.xxh64_hexdigest(url.encode())}"
        self.max_bytes = max_bytes

    def draft(self) -> Path:
        """Where to write a file that `keep` will then take in, on the same file system."""
        private_directory(self.directory, _CURE)
        return self.directory / f"{uuid.uuid4().hex}{TEMPORARY_SUFFIX}"

    def keep(self, name: str, draft: Path) -> None:
        """`draft` becomes the copy of `name`, and the oldest copies make room for it. It is gone from its old place."""
        os.replace(draft, self._path(name))
        self._make_room()

    def find(self, name: str) -> Path | None:
        """The copy of `name`, if there is one. Being asked for makes it young again."""
        path = self._path(name)
        try:
            os.utime(path)
        except OSError:
            return None
        check_private(self.directory, _CURE)
        return path

    def drop(self, name: str) -> None:
        """The storage no longer has `name`."""
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
