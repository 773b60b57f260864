"""Where part files are: a directory that all hosts mount, or an object store.

Paths are whole: the sink's base path is their beginning. A file of an object store appears when it is complete, and is
renamed by a copy and a deletion, so both names may be there for a while.
"""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from shutil import copyfileobj
from typing import Any, BinaryIO, Final

from headwater.checkpoint.storage.base import StorageSpec
from headwater.checkpoint.storage.durable_file import make_directories, sync_directory, sync_file
from headwater.common.errors import ConfigurationError
from headwater.common.machine.local_disk import room_for
from headwater.datastream.connectors.file_access import local_path, resolved_option

MAKE_ROOM: Final = "make room there. What is visible stays as it is, and the job goes on from its last checkpoint"

_COPY_BYTES: Final = 1 << 20


class DraftFile(ABC):
    """A new file that is being written."""

    file: BinaryIO

    @abstractmethod
    def complete(self) -> int:
        """Make it durable, and return its length."""

    @abstractmethod
    def discard(self) -> None:
        """Forget it."""


class FileStore(ABC):
    """Files below one base path. Pickled to the tasks."""

    appends: bool
    """True if files can grow."""
    renames: bool
    """True if a file has either its old or its new name. Otherwise it may have both for a while."""

    def __init__(self, base_path: str) -> None:
        self.base_path = base_path

    @abstractmethod
    def create(self, path: str) -> DraftFile: ...

    @abstractmethod
    def touch(self, path: str) -> None:
        """Make an empty file, in a directory that is there."""

    @abstractmethod
    def size(self, path: str) -> int | None:
        """The length of a file; None if it is not there."""

    @abstractmethod
    def open(self, path: str) -> BinaryIO: ...

    @abstractmethod
    def rename(self, source: str, target: str) -> None: ...

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete a file, if it is there."""

    @abstractmethod
    def walk(self) -> Iterable[str]:
        """All files below the base path."""

    @abstractmethod
    def sync(self, directories: Iterable[str]) -> None:
        """Make the names in these directories durable, if they are there."""

    @abstractmethod
    def grow(self, target: str, at: int, pieces: Sequence[str]) -> None:
        """Write `pieces` into `target`, from its byte `at` on. Durable on return. Repeating it changes nothing."""

    def exists(self, path: str) -> bool:
        return self.size(path) is not None


class _LocalDraft(DraftFile):
    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self.file = _create(path)
        except FileNotFoundError:
            make_directories(os.path.dirname(path))
            self.file = _create(path)

    def complete(self) -> int:
        sync_file(self.file)
        length = self.file.tell()
        self.file.close()
        return length

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            self.file.close()
        with contextlib.suppress(OSError):
            os.unlink(self._path)


def _create(path: str) -> BinaryIO:
    return open(path, "xb", buffering=1 << 18)  # closed by complete or discard


class LocalFiles(FileStore):
    """A directory."""

    appends = True
    renames = True

    def create(self, path: str) -> DraftFile:
        return _LocalDraft(path)

    def touch(self, path: str) -> None:
        open(path, "xb").close()

    def size(self, path: str) -> int | None:
        try:
            return os.stat(path).st_size
        except FileNotFoundError:
            return None

    def open(self, path: str) -> BinaryIO:
        return open(path, "rb")

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def walk(self) -> Iterable[str]:
        return [os.path.join(directory, name) for directory, _, names in os.walk(self.base_path) for name in names]

    def sync(self, directories: Iterable[str]) -> None:
        for directory in directories:
            with contextlib.suppress(FileNotFoundError):  # a reader may have taken the whole directory
                sync_directory(directory)

    def grow(self, target: str, at: int, pieces: Sequence[str]) -> None:
        # Each byte has one place, whoever writes it: a driver that wakes up late repeats what the next one wrote.
        with room_for("output of FileSink", self.base_path, MAKE_ROOM), open(target, "r+b", buffering=0) as grown:
            offset = at
            for piece in pieces:
                with open(piece, "rb", buffering=0) as content:
                    while block := content.read(_COPY_BYTES):
                        offset += os.pwrite(grown.fileno(), block, offset)
            sync_file(grown)


class _StoredDraft(DraftFile):
    def __init__(self, storage: Any, name: str) -> None:
        self._writing = storage.write(name)
        self.file = self._writing.__enter__()

    def complete(self) -> int:
        length = self.file.tell()
        self._writing.__exit__(None, None, None)
        return length

    def discard(self) -> None:
        with contextlib.suppress(_Discarded):
            self._writing.__exit__(_Discarded, _Discarded(), None)


class _Discarded(Exception):
    """Nobody wants the file any more."""


class StoredFiles(FileStore):
    """An object store, or anything else that fsspec reaches."""

    appends = False
    renames = False

    def __init__(self, base_path: str, options: Mapping[str, Any]) -> None:
        super().__init__(base_path.rstrip("/"))
        self._options = dict(options)
        self._opened: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def create(self, path: str) -> DraftFile:
        return _StoredDraft(self._storage, self._name(path))

    def touch(self, path: str) -> None:
        with self._storage.write(self._name(path)):
            pass

    def size(self, path: str) -> int | None:
        found = self._storage.size(self._name(path))
        return None if found is None else int(found)

    def open(self, path: str) -> BinaryIO:
        opened: BinaryIO = self._storage.open(self._name(path))
        return opened

    def rename(self, source: str, target: str) -> None:
        self._storage.copy_within(self._name(source), self._name(target))
        self._storage.delete(self._name(source))

    def delete(self, path: str) -> None:
        self._storage.delete(self._name(path))

    def walk(self) -> Iterable[str]:
        return [f"{self.base_path}/{name}" for name in self._storage.walk()]

    def sync(self, directories: Iterable[str]) -> None:
        """Do nothing: what an object store has accepted is durable."""

    def grow(self, target: str, at: int, pieces: Sequence[str]) -> None:
        assert at == 0, "an object cannot grow"
        with self._storage.write(self._name(target)) as whole:
            for piece in pieces:
                with self.open(piece) as content:
                    copyfileobj(content, whole, _COPY_BYTES)

    @property
    def _storage(self) -> Any:
        if self._opened is None:
            from headwater.checkpoint.storage.fsspec import FsspecStorage

            options = {key: resolved_option(value, key) for key, value in self._options.items()}
            self._opened = FsspecStorage(StorageSpec(self.base_path, options))
        return self._opened

    def _name(self, path: str) -> str:
        return path.removeprefix(self.base_path).lstrip("/")


def file_store(base_path: str, options: Mapping[str, Any] | None = None) -> FileStore:
    """The store that a path or URL means."""
    local = local_path(base_path)
    if local is None:
        return StoredFiles(base_path, options or {})
    if options:
        raise ConfigurationError(f"FileSink: {base_path!r} is a local path, which has no storage options")
    return LocalFiles(local)
