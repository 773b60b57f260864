"""Where checkpoints are kept: a directory, or anything that fsspec can reach, behind one small interface.

Names are relative to the storage's URL, with '/' between their parts (`manifests/epoch-000000000012.manifest`). Files
are written once and never changed, so a storage needs neither append, nor rename, nor locks. What it does need is that
a file is whole under its name or not there, and that what was written is seen by whoever reads afterwards.
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
    """Files of one checkpoint directory. Used by several threads and processes at once; picklable.

    Errors of the store itself are OSErrors (a local disk) or StorageError (after retries). FileNotFoundError and
    FileExistsError mean exactly what they say.
    """

    @property
    def url(self) -> str:
        """What opens the same storage elsewhere, and what errors show."""
        ...

    @property
    def root(self) -> Path | StoredFile: ...

    def create(self, directories: Sequence[str]) -> None:
        """Make directories, where the store has such things."""
        ...

    def write(self, name: str, *, durable: bool = True) -> AbstractContextManager[BinaryIO]:
        """Open a file that is at `name`, whole and durable, when the block ends without an error; else nothing is.

        Replaces what was there. `durable=False` may leave out waiting for the disk.
        """
        ...

    def write_once(self, name: str, content: bytes, *, durable: bool = True) -> None:
        """Write a small file that must not exist: of several writers exactly one wins, FileExistsError for the rest.

        `content` must be unique to its writer: where answers get lost, a store takes a file with the same content for
        the caller's own. If this raises anything else than FileExistsError, the file may or may not be there.
        """
        ...

    def copy(self, source: str, target: str) -> None:
        """Make the file at `target` what that at `source` is; replaces what was there.

        After a power cut `target` may be what it was before. It is whole in any case, if `source` was durable.
        """
        ...

    def upload(self, name: str, source: Path) -> None:
        """Copy a local file to `name`. Durable on return."""
        ...

    def download(self, name: str, target: Path) -> None:
        """Copy the file at `name` to a local path. The caller checks what it got."""
        ...

    def read(self, name: str) -> bytes: ...

    def open(self, name: str) -> BinaryIO:
        """A reader that can seek: who wants a few ranges of a large file pays for these only."""
        ...

    def size(self, name: str) -> int | None:
        """Length in bytes; None if there is no such file. Never answered from a cache."""
        ...

    def list(self, directory: str) -> list[str]:
        """Names (without the directory) of the files in `directory`, in no order; empty where there is none."""
        ...

    def directories(self) -> Sequence[str]:
        """Names of the directories directly in this one, in no order; empty if it is not there. For tools."""
        ...

    def delete(self, name: str) -> bool:
        """Delete a file. False if it is known not to have been there."""
        ...

    def locate(self, name: str) -> Path | StoredFile:
        """The file as a value to hand around: a Path where the storage is a local directory."""
        ...

    def local_copy(self, name: str) -> Path | None:
        """A copy on this machine that may be read instead. May be damaged: the reader checks, and falls back."""
        ...


@dataclass(frozen=True)
class StoredFile:
    """A file in a storage: what a Path is for a local file, as far as readers need it."""

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
    """`location` in the storage to which it belongs; for a Path that is its directory."""
    return location if isinstance(location, StoredFile) else StoredFile(LocalStorage(location.parent), location.name)


@dataclass(frozen=True)
class StorageSpec:
    """All that another process needs to open the same storage. Plain values; pickled with the job."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """For the fsspec file system: endpoint, credentials. Not shown: there may be secrets in it."""
    copies_directory: str | None = None
    """Where a machine keeps copies of the snapshots that it wrote, if the storage is a remote one."""
    copies_max_bytes: int = 10 << 30


def open_storage(where: str | Path | StorageSpec) -> CheckpointStorage:
    """The storage at a path, a `file:` URL or a URL of any scheme that fsspec knows. Does not connect yet."""
    spec = where if isinstance(where, StorageSpec) else StorageSpec(str(where))
    if is_remote(spec.url):
        # Loading fsspec takes time, and jobs on a local disk do without.
        from headwater.checkpoint.storage.fsspec import FsspecStorage

        return FsspecStorage(spec)
    return LocalStorage(local_path(spec.url))


def is_remote(url: str | Path) -> bool:
    """Whether `url` means anything else than a path on this machine."""
    scheme = _SCHEME.match(str(url))
    return scheme is not None and scheme[1].lower() != "file"


def local_path(url: str | Path) -> Path:
    """The absolute path that a local URL or path means."""
    return Path(re.sub(r"^file:(//)?(?=/)", "", str(url), flags=re.IGNORECASE)).expanduser().absolute()
