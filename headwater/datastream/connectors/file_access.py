"""Finding and opening files: local paths, and anything that `pyarrow.fs` knows by its URI (s3, gs, hdfs).

Local files go through Python's own `open`, which is faster and gives the errors that people know.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import lzma
import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, cast

import zstandard

from headwater.common.errors import CheckpointError, ConfigurationError

COMPRESSED_SUFFIXES: Final = (".gz", ".gzip", ".bz2", ".xz", ".zst", ".zstd")

_BUFFER_BYTES: Final = 1 << 18
_UNFINISHED_SUFFIXES: Final = (".inprogress", ".tmp", ".part", ".crdownload", "._COPYING_")
_URI: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.\-]+://")


@dataclass(frozen=True)
class FileSplit:
    """One file to read, as it was when it was found, or a part of it."""

    path: str
    size: int
    groups: tuple[int, int] | None = None
    """(first, end) of the groups of rows to read; None: all of the file."""


def local_path(path: str) -> str | None:
    """The absolute local path that `path` means; None if it is on another file system."""
    if path.startswith("file://"):
        path = path.removeprefix("file://")
    elif _URI.match(path):
        return None
    return os.path.abspath(os.path.expanduser(path))


def find_files(path: str, *, must_exist: bool) -> list[FileSplit]:
    """The files that a file, directory (with all below it) or glob pattern means now, sorted by path.

    Hidden files (`.` or `_` in front) and files that somebody is still writing are left out, unless named themselves.
    """
    local = local_path(path)
    try:
        found = _find_local(local) if local is not None else _find_remote(path)
    except PermissionError as error:
        raise ConfigurationError(f"FileSource: {error.filename or path} cannot be read: permission denied") from error
    if found is None or (must_exist and not found and _is_pattern(path)):
        raise ConfigurationError(
            f"FileSource: there is nothing at {path!r}; expected a file, a directory or a pattern that matches files"
        )
    return sorted(found, key=lambda file: file.path)


def open_plain(path: str) -> BinaryIO:
    """Open the bytes of `path` as they are stored, seekable."""
    local = local_path(path)
    if local is not None:
        return open(local, "rb", buffering=_BUFFER_BYTES)
    system, inner = _remote(path)
    return io.BufferedReader(system.open_input_file(inner), _BUFFER_BYTES)


def open_unchanged(split: FileSplit, position: object) -> BinaryIO:
    """Open a file whose format needs all of it, as it was when it was found. CheckpointError if it is another one now.

    :param position: how far the split was read, for the error.
    """
    try:
        size = current_size(split.path)
        if size == split.size:
            return open_plain(split.path)
    except FileNotFoundError:
        raise CheckpointError(
            f"file {split.path} is gone, but what comes after position {position} is still to be read; put it back"
        ) from None
    except OSError as error:
        raise CheckpointError(f"file {split.path} cannot be opened: {error.strerror or error}") from error
    raise CheckpointError(
        f"file {split.path} had {split.size:,} bytes and now has {size:,}: it was replaced while the job reads it; "
        "restore it, or start on a fresh checkpoint directory"
    )


def open_decompressed(path: str) -> BinaryIO:
    """Open the content of `path`, decompressed as its suffix says."""
    plain = open_plain(path)
    suffix = posixpath.splitext(path)[1].lower()
    opened: Any
    if suffix in (".gz", ".gzip"):
        opened = gzip.GzipFile(fileobj=plain)
    elif suffix == ".bz2":
        opened = bz2.BZ2File(plain)
    elif suffix == ".xz":
        opened = lzma.LZMAFile(plain)  # noqa: SIM115 (the caller closes it)
    elif suffix in (".zst", ".zstd"):
        opened = zstandard.ZstdDecompressor().stream_reader(plain, read_across_frames=True)
    else:
        return plain
    return io.BufferedReader(opened, _BUFFER_BYTES)


def is_compressed(path: str) -> bool:
    return path.lower().endswith(COMPRESSED_SUFFIXES)


def current_size(path: str) -> int:
    """The size of `path` now. Raises FileNotFoundError if it is gone."""
    local = local_path(path)
    if local is not None:
        return os.stat(local).st_size
    system, inner = _remote(path)
    size = system.get_file_info(inner).size
    if size is None:
        raise FileNotFoundError(path)
    return int(size)


def is_readable_name(name: str) -> bool:
    """False for hidden files and for files that somebody is still writing."""
    return not name.startswith((".", "_")) and not name.endswith(_UNFINISHED_SUFFIXES)


def _is_pattern(path: str) -> bool:
    return glob.has_magic(path)


def _find_local(path: str) -> list[FileSplit] | None:
    if os.path.isfile(path):
        return [FileSplit(path, os.stat(path).st_size)]
    if os.path.isdir(path):
        return list(_walk(path))
    if not _is_pattern(path):
        return None
    found: list[FileSplit] = []
    for match in glob.iglob(path, recursive=True):
        if os.path.isdir(match):
            if "**" not in path:  # `**` comes to the files below by itself
                found += _walk(match)
        elif is_readable_name(os.path.basename(match)):
            found.append(FileSplit(match, os.stat(match).st_size))
    return list({file.path: file for file in found}.values())


def _walk(directory: str) -> Iterator[FileSplit]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if not is_readable_name(entry.name):
                continue
            if entry.is_dir():
                yield from _walk(entry.path)
            elif entry.is_file():
                try:
                    yield FileSplit(entry.path, entry.stat().st_size)
                except FileNotFoundError:
                    continue  # moved away since the directory was read


def _remote(uri: str) -> tuple[Any, str]:
    from pyarrow import fs  # only where it is needed: importing it takes a while

    try:
        system, path = fs.FileSystem.from_uri(uri)
    except Exception as error:
        raise ConfigurationError(f"FileSource: {uri!r} is on a file system that cannot be used: {error}") from error
    return system, cast(str, path)


def _find_remote(uri: str) -> list[FileSplit] | None:
    from pyarrow import fs

    if _is_pattern(uri):
        raise ConfigurationError(f"FileSource: {uri!r} is a pattern; these are for local paths only, name a directory")
    system, path = _remote(uri)
    info = system.get_file_info(path)
    if info.type == fs.FileType.File:
        return [FileSplit(uri, int(info.size))]
    if info.type != fs.FileType.Directory:
        return None
    found: list[FileSplit] = []
    for file in system.get_file_info(fs.FileSelector(path, recursive=True)):
        inner = posixpath.relpath(file.path, path)
        if file.type == fs.FileType.File and all(map(is_readable_name, inner.split("/"))):
            found.append(FileSplit(uri.rstrip("/") + "/" + inner, int(file.size)))
    return found
