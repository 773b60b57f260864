"""Checkpoints in an object store, or in any other storage that fsspec reaches.

An object appears whole or not at all, so there are no temporary names here. Files are first written to the local disk
and then sent: a transfer that fails can start again, and the file may stay as a local copy. Calls are retried after
temporary errors.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar, cast

import fsspec

from headwater.checkpoint.storage.base import StorageSpec, StoredFile
from headwater.checkpoint.storage.local_copies import LocalCopies
from headwater.checkpoint.storage.retries import RetryPolicy
from headwater.common.errors import CheckpointError, StorageError

log = logging.getLogger(__name__)

_T = TypeVar("_T")

READ_AHEAD_BYTES: Final = 8 << 20
"""A reader asks for this much at once: one request for a small file, few for a large one."""

_COPIED: Final = "snapshots/"
"""Only these files get local copies: slots read them when they restart. Other files are small, for the driver."""


class FsspecStorage:
    """A `CheckpointStorage` behind a URL such as `s3://bucket/jobs/my-job`.

    `write_once` is a conditional request if the file system has one (S3: `If-None-Match: *`). Otherwise it looks for
    the file first, and two drivers that start at the same moment may both believe that they won.
    """

    def __init__(self, spec: StorageSpec, retry: RetryPolicy | None = None) -> None:
        self.spec = spec
        self._retry = retry or RetryPolicy()
        self._opened: tuple[int, Any, str] | None = None  # (pid, file system, path of the root)
        directory = spec.copies_directory
        self.copies = LocalCopies(directory, self.url, spec.copies_max_bytes) if directory else None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FsspecStorage) and other.url == self.url

    def __hash__(self) -> int:
        return hash(self.url)

    def __repr__(self) -> str:
        return f"FsspecStorage({self.url!r})"

    @property
    def url(self) -> str:
        return self.spec.url.rstrip("/")

    @property
    def root(self) -> StoredFile:
        return StoredFile(self, "")

    def create(self, directories: Sequence[str]) -> None:
        """Do nothing: an object store has no directories."""

    # --- writing

    @contextlib.contextmanager
    def write(self, name: str, *, durable: bool = True, unnamed: bool = False) -> Iterator[BinaryIO]:
        with self._draft(name) as (draft, file):
            yield file
            file.flush()
            self.upload(name, draft)
            if self.copies is not None and self.copies.holds(draft):
                self._keep(name, draft)

    def write_once(self, name: str, content: bytes, *, durable: bool = True) -> None:
        def create(fs: Any, path: str) -> None:
            try:
                fs.pipe_file(path, content, mode="create")
            except FileExistsError:
                # If the answer to a request got lost, the retry finds the file that the first request wrote.
                if fs.cat_file(path) != content:
                    raise

        self._call("write", name, create)

    def copy(self, source: str, target: str, content: bytes) -> None:
        self._call("write", target, lambda fs, path: fs.pipe_file(path, content))

    def copy_within(self, source: str, target: str) -> None:
        """Copy a file inside the storage, if it can, without moving its bytes through this machine."""
        _, root = self._file_system()
        self._call("write", target, lambda fs, path: fs.cp_file(f"{root}/{source}", path))

    def upload(self, name: str, source: Path) -> None:
        self._call("write", name, lambda fs, path: fs.put_file(str(source), path))

    def _keep(self, name: str, draft: Path) -> None:
        """Keep `draft` as the local copy of `name`. Never fails, because the storage already has the file."""
        assert self.copies is not None
        try:
            self.copies.keep(name, draft)
        except OSError as error:
            log.warning("no local copy of %s/%s is kept: %s", self.url, name, error)

    @contextlib.contextmanager
    def _draft(self, name: str) -> Iterator[tuple[Path, BinaryIO]]:
        """A local file to write, and where it is until the block ends."""
        if self.copies is not None and name.startswith(_COPIED):
            try:
                draft = self.copies.draft()
            except OSError as error:
                log.warning("%s cannot be used for local copies: %s", self.copies.directory, error)
            else:
                with self.copies.writing(draft) as file:
                    yield draft, file
                return
        with tempfile.TemporaryFile() as file:  # without a name: if this process is killed, nothing is left
            yield Path(f"/proc/self/fd/{file.fileno()}"), cast(BinaryIO, file)

    # --- reading

    def read(self, name: str) -> bytes:
        return cast(bytes, self._call("read", name, lambda fs, path: fs.cat_file(path)))

    def open(self, name: str) -> BinaryIO:
        size = self.size(name)
        if size is None:
            raise FileNotFoundError(2, "No such file", f"{self.url}/{name}")

        def fetch(start: int, stop: int) -> bytes:
            return cast(bytes, self._call("read", name, lambda fs, path: fs.cat_file(path, start=start, end=stop)))

        return cast(BinaryIO, _RangeReader(size, fetch))

    def download(self, name: str, target: Path) -> None:
        self._call("read", name, lambda fs, path: fs.get_file(path, str(target)))

    def size(self, name: str) -> int | None:
        try:
            return int(self._call("look-up", name, lambda fs, path: fs.info(path)["size"]))
        except FileNotFoundError:
            return None

    def list(self, directory: str) -> list[str]:
        try:
            found = self._call("listing", directory, lambda fs, path: fs.ls(path, detail=True))
        except FileNotFoundError:
            return []
        return _names(found, "file")

    def walk(self, directory: str = "") -> dict[str, int]:
        """Return {name: length} of all files below `directory`, with names relative to the storage."""
        _, root = self._file_system()
        try:
            found = self._call("listing", directory, lambda fs, path: fs.find(path.rstrip("/"), detail=True))
        except FileNotFoundError:
            return {}
        return {path.removeprefix(f"{root}/"): int(info["size"]) for path, info in found.items()}

    def directories(self) -> Sequence[str]:
        try:
            return _names(self._call("listing", "", lambda fs, path: fs.ls(path, detail=True)), "directory")
        except FileNotFoundError:
            return []

    def delete(self, name: str) -> bool:
        if self.copies is not None:
            self.copies.drop(name)
        try:
            self._call("deletion", name, lambda fs, path: fs.rm_file(path))
        except FileNotFoundError:
            return False
        return True

    def locate(self, name: str) -> StoredFile:
        return StoredFile(self, name)

    def local_copy(self, name: str) -> Path | None:
        return self.copies.find(name) if self.copies is not None else None

    # --- the file system

    def _call(self, what: str, name: str, call: Callable[[Any, str], _T]) -> _T:
        fs, root = self._file_system()
        url = f"{self.url}/{name}"
        try:
            return self._retry.call(what, url, lambda: call(fs, f"{root}/{name}"))
        except FileNotFoundError as error:
            if what == "write":  # there is no bucket
                raise StorageError(f"checkpoint storage: {url} cannot be written: {error}; make the bucket") from error
            raise

    def _file_system(self) -> tuple[Any, str]:
        """Return (file system, root path), opened anew in each process: connections do not survive a fork."""
        opened = self._opened
        if opened is None or opened[0] != os.getpid():
            try:
                fs, root = fsspec.core.url_to_fs(self.spec.url, use_listings_cache=False, **self.spec.options)
            except (ImportError, ValueError, TypeError) as error:
                raise CheckpointError(
                    f"checkpoint directory {self.url} cannot be used: {error}. Expected a path, or a URL whose scheme "
                    "fsspec knows and whose package is installed (for s3: pip install 'headwater[s3]'), with options "
                    "that it has (headwater.storage.options, HEADWATER_STORAGE_OPTIONS)"
                ) from error
            opened = self._opened = (os.getpid(), fs, root.rstrip("/"))
        return opened[1], opened[2]


def _names(entries: Iterable[Mapping[str, Any]], kind: str) -> list[str]:
    return [entry["name"].rstrip("/").rpartition("/")[2] for entry in entries if entry["type"] == kind]


class _RangeReader(io.RawIOBase):
    """Reads a remote file of known size in ranges. Keeps the last range in memory."""

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        self._size = size
        self._fetch = fetch
        self._position = 0
        self._start = 0
        self._buffer = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._position = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        return self._position

    def read(self, size: int = -1) -> bytes:
        stop = self._size if size < 0 else min(self._position + size, self._size)
        start = self._position
        if start >= stop:
            return b""
        if not self._start <= start < stop <= self._start + len(self._buffer):
            self._buffer = self._fetch(start, min(max(stop, start + READ_AHEAD_BYTES), self._size))
            self._start = start
        content = self._buffer[start - self._start : stop - self._start]
        self._position = start + len(content)
        return content
