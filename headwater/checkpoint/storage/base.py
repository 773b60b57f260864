"""Where checkpoints are kept: a directory, or anything that fsspec can reach, behind one small interface.

Names are relative to the storage's URL, with '/' between their parts (`manifests/epoch-000000000012.manifest`). Files
are written once and never changed, so a storage needs neither append, nor rename, nor locks. It must guarantee two
things: a file appears whole or not at all, and every later reader sees a written file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from headwater.checkpoint.storage.local import LocalStorage

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.\-]+)://")


class CheckpointStorage(Protocol):
    """The files of one checkpoint directory. Picklable; several threads and processes use it at once.

    If the storage fails, methods raise OSError (a local disk) or StorageError (a remote one, after retries).
    FileNotFoundError and FileExistsError are never such failures: the file really is missing, or really exists.
    """

    @property
    def url(self) -> str:
        """Opens the same storage elsewhere. Errors show it."""
        ...

    @property
    def root(self) -> Path | StoredFile: ...

    def create(self, directories: Sequence[str]) -> None:
        """Make directories, if the storage has directories."""
        ...

    def write(self, name: str, *, durable: bool = True, unnamed: bool = False) -> AbstractContextManager[BinaryIO]:
        """Open a file for writing. It appears at `name`, whole and durable, when the block ends without an error.

        Replaces an existing file. With `durable=False` the storage need not wait for the disk. `unnamed` promises that
        nobody has used the name, and that nobody opens the file before another one names it, with its checksum: then it
        may be seen while it is written, and a process that dies may leave a part of it.
        """
        ...

    def write_once(self, name: str, content: bytes, *, durable: bool = True) -> None:
        """Write a small file that must not exist. Of several writers exactly one wins; the others get FileExistsError.

        `content` must be unique to its writer: if an answer got lost, the storage takes a file with the same content
        for the caller's own. After any other error the file may or may not exist.
        """
        ...

    def copy(self, source: str, target: str, content: bytes) -> None:
        """Give the file at `target` the content of `source`, which is `content`; replaces what was there.

        After a power cut `target` may be what it was before. It is whole in any case, if `source` was durable.
        """
        ...

    def upload(self, name: str, source: Path) -> None:
        """Copy a local file to `name`. Durable on return."""
        ...

    def download(self, name: str, target: Path) -> None:
        """Copy the file at `name` to a local path. The caller must check the content."""
        ...

    def read(self, name: str) -> bytes: ...

    def open(self, name: str) -> BinaryIO:
        """Return a reader that can seek: reading a few ranges of a large file transfers little more than these."""
        ...

    def size(self, name: str) -> int | None:
        """Return the length in bytes; None if there is no such file. Never answers from a cache."""
        ...

    def list(self, directory: str) -> list[str]:
        """Return the names (without directory) of the files in `directory`, in any order; empty if it is missing."""
        ...

    def directories(self) -> Sequence[str]:
        """Return the names of the directories directly in this one, in any order; empty if it is missing. For tools."""
        ...

    def delete(self, name: str) -> bool:
        """Delete a file. Return False if it certainly did not exist."""
        ...

    def locate(self, name: str) -> Path | StoredFile:
        """Return the location of a file: a Path in a local directory, otherwise a StoredFile."""
        ...

    def local_copy(self, name: str) -> Path | None:
        """Return a copy on this machine, if any, to read instead. It may be damaged: readers check and fall back."""
        ...


@dataclass(frozen=True)
class StoredFile:
    """A file in a remote storage, with the few methods of `Path` that readers need."""

    storage: CheckpointStorage
    path: str
    """Relative to the storage; empty for the storage itself."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def __str__(self) -> str:
        return f"{self.storage.url}/{self.path}" if self.path else self.storage.url

    def __truediv__(self, name: str) -> StoredFile:
        return StoredFile(self.storage, f"{self.path}/{name}" if self.path else name)

    def read_bytes(self) -> bytes:
        return self.storage.read(self.path)

    def exists(self) -> bool:
        return self.storage.size(self.path) is not None


Location = Path | StoredFile
"""Where a file of a checkpoint is."""


def stored(location: Location) -> StoredFile:
    """Return `location` with its storage. For a Path, the storage is its directory."""
    return location if isinstance(location, StoredFile) else StoredFile(LocalStorage(location.parent), location.name)


@dataclass(frozen=True)
class StorageSpec:
    """What another process needs to open the same storage. Plain values, pickled with the job."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Options of the fsspec file system: endpoint, credentials. Never shown, because they may contain secrets."""
    copies_directory: str | None = None
    """Where each machine keeps local copies of the snapshots that it wrote to a remote storage."""
    copies_max_bytes: int = 10 << 30


def open_storage(where: str | Path | StorageSpec) -> CheckpointStorage:
    """Return the storage at a path, a `file:` URL or a URL of any scheme that fsspec knows. Does not connect yet."""
    spec = where if isinstance(where, StorageSpec) else StorageSpec(str(where))
    if is_remote(spec.url):
        # Imported here: loading fsspec takes time, and jobs on a local disk do not need it.
        from headwater.checkpoint.storage.fsspec import FsspecStorage

        return FsspecStorage(spec)
    return LocalStorage(local_path(spec.url))


def is_remote(url: str | Path) -> bool:
    """Return True if `url` is not a path on this machine."""
    scheme = _SCHEME.match(str(url))
    return scheme is not None and scheme[1].lower() != "file"


def local_path(url: str | Path) -> Path:
    """The absolute path that a local URL or path means."""
    return Path(re.sub(r"^file:(//)?(?=/)", "", str(url), flags=re.IGNORECASE)).expanduser().absolute()
