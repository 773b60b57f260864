"""Finding and opening files: local paths, and anything that `pyarrow.fs` (s3, gs, hdfs) or fsspec knows by its URI.

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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, cast

import zstandard

from headwater.common.errors import CheckpointError, ConfigurationError, ExternalSystemError, HeadwaterError
from headwater.common.secrets import resolve
from headwater.datastream.connectors.path_pattern import directory_of, matcher

COMPRESSED_SUFFIXES: Final = (".gz", ".gzip", ".bz2", ".xz", ".zst", ".zstd")

_BUFFER_BYTES: Final = 1 << 18
_UNFINISHED_SUFFIXES: Final = (".inprogress", ".tmp", ".part", ".crdownload", "._COPYING_")
_WITH_BUCKETS: Final = ("s3://", "s3a://", "gs://", "gcs://")
_URI: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.\-]+://")


@dataclass(frozen=True)
class FileSplit:
    """One file to read, as it was when it was found, or a part of it."""

    path: str
    size: int
    groups: tuple[int, int] | None = None
    """(first, end) of the groups of rows to read; None: all of the file."""
    range: tuple[int, int] | None = None
    """(first, end): the lines that begin in these bytes are read; None: all of the file."""


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
    except Exception as error:
        if local is not None or isinstance(error, HeadwaterError):
            raise
        raise ExternalSystemError(f"FileSource: cannot list {path!r}: {type(error).__name__}: {error}") from error
    # An object store has no empty directories: what is below a prefix may be all gone, and come again.
    gone = found is None and (must_exist or local is not None)
    if gone or (must_exist and not found and glob.has_magic(path)):
        raise ConfigurationError(
            f"FileSource: there is nothing at {path!r}; expected a file, a directory or a pattern that matches files"
        )
    return sorted(found or (), key=lambda file: file.path)


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


def _find_local(path: str) -> list[FileSplit] | None:
    if os.path.isfile(path):
        return [FileSplit(path, os.stat(path).st_size)]
    if os.path.isdir(path):
        return list(_walk(path))
    if not glob.has_magic(path):
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


def use_options(uri: str, options: Mapping[str, Any]) -> None:
    """In this process, open what is below `uri` through fsspec with these options. They stay out of splits, which are
    in manifests."""
    uri = directory_of(uri)
    if _options.get(uri) != options:
        _options[uri] = options
        _opened.pop(uri, None)


_options: dict[str, Mapping[str, Any]] = {}
_opened: dict[str, tuple[int, Any]] = {}  # {uri: (process, file system)}: connections do not survive a fork


def _remote(uri: str) -> tuple[Any, str]:
    from pyarrow import fs  # only where it is needed: importing it takes a while

    try:
        known = next((base for base in _options if uri.startswith(base)), None)
        if known is not None:
            return _through_fsspec(uri, known, _options[known])
        try:
            system, path = fs.FileSystem.from_uri(uri)
        except ValueError:  # a scheme that pyarrow does not know
            return _through_fsspec(uri, uri.partition("://")[0], {})
    except Exception as error:
        raise ConfigurationError(
            f"FileSource: {uri!r} is on a file system that cannot be used: {error}. The package for its scheme may be "
            "missing (for s3: pip install 'headwater[s3]')"
        ) from error
    return system, cast(str, path)


def _through_fsspec(uri: str, base: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    import fsspec
    from pyarrow import fs

    opened = _opened.get(base)
    if opened is None or opened[0] != os.getpid():
        with_secrets = {key: resolved_option(value, key) for key, value in options.items()}
        system, _ = fsspec.core.url_to_fs(uri, use_listings_cache=False, **with_secrets)
        opened = _opened[base] = (os.getpid(), fs.PyFileSystem(fs.FSSpecHandler(system)))
    return opened[1], uri.partition("://")[2]


def resolved_option(value: Any, key: str) -> Any:
    """An option of a file system, with its secrets."""
    if isinstance(value, Mapping):
        return {inner: resolved_option(each, inner) for inner, each in value.items()}
    return resolve(value, f"storage option {key}") if isinstance(value, str) else value


def _find_remote(uri: str) -> list[FileSplit] | None:
    from pyarrow import fs

    base = directory_of(uri)
    system, path = _remote(base)
    info = system.get_file_info(path)
    if info.type == fs.FileType.File:
        return [FileSplit(uri, int(info.size))]
    if info.type != fs.FileType.Directory:
        _check_bucket(uri, system, path)
        return None
    is_meant = matcher(uri) if glob.has_magic(uri) else None
    found: list[FileSplit] = []
    for file in system.get_file_info(fs.FileSelector(path, recursive=True)):
        inner = posixpath.relpath(file.path, path)
        if file.type != fs.FileType.File or not all(map(is_readable_name, inner.split("/"))):
            continue
        full = base.rstrip("/") + "/" + inner
        if is_meant is None or is_meant(full):
            found.append(FileSplit(full, int(file.size)))
    return found


def _check_bucket(uri: str, system: Any, path: str) -> None:
    """Raise if the bucket is not there: an empty prefix may get files, a wrong name never does."""
    from pyarrow import fs

    bucket = path.lstrip("/").partition("/")[0]
    try:
        missing = uri.startswith(_WITH_BUCKETS) and system.get_file_info(bucket).type == fs.FileType.NotFound
    except OSError:
        return  # whoever may only see the prefix cannot tell
    if missing:
        raise ConfigurationError(f"FileSource: there is no bucket {bucket!r}, or it may not be read; path: {uri!r}")
