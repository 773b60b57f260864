"""Writes a file so that it is either whole under its name or missing, even after a power cut.

The steps: temporary name, fsync, rename, fsync of the directory. `durable=False` leaves out both fsyncs: a killed
process still leaves no partial file, but a machine that loses power may.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

TEMPORARY_SUFFIX: Final = ".tmp"
_syncs = True
_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


def temporary(path: Path) -> Path:
    """Return the name under which `path` is written before the rename."""
    return path.with_name(path.name + TEMPORARY_SUFFIX)


@contextlib.contextmanager
def replace_atomically(path: Path | str, *, durable: bool) -> Iterator[BinaryIO]:
    """Open a file that becomes `path` when the block ends without an error. After an error, `path` is unchanged."""
    draft = f"{path}{TEMPORARY_SUFFIX}"
    try:
        with open(draft, "wb") as file:
            yield file
            if durable:
                sync_file(file)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    if durable:
        sync_directory(os.path.dirname(path) or ".")


@contextlib.contextmanager
def create_unnamed(path: Path | str, *, durable: bool) -> Iterator[BinaryIO]:
    """Open the new file `path`, for whose name nobody asks before the block has ended. After an error it is gone.

    Without a rename the file system's journal has one thing less to make durable.
    """
    try:
        with open(path, "wb") as file:
            yield file
            if durable:
                sync_file(file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise
    if durable:
        sync_directory(os.path.dirname(path) or ".")


def create_exclusively(path: Path | str, content: bytes, draft_name: str, *, durable: bool) -> None:
    """Write `content` to `path`, which must not exist. Of several writers exactly one wins.

    The others get FileExistsError. `draft_name` must be unique to the caller. A reader never sees a partial file.
    """
    draft = _beside(path, draft_name)
    try:
        with open(draft, "xb") as file:
            file.write(content)
            if durable:
                sync_file(file)
        try:
            os.link(draft, path)
        except FileNotFoundError:
            if not os.path.exists(path):
                raise
            # Whoever won has removed the draft as well (store.py).
            raise FileExistsError(errno.EEXIST, "exists", str(path)) from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # This file system has no hard links (some FUSE mounts). The directory lock keeps other drivers out, so
            # this check only has to catch this driver's own mistakes.
            if os.path.exists(path):
                raise FileExistsError(errno.EEXIST, "exists", str(path)) from None
            os.rename(draft, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(draft)
    if durable:
        sync_directory(os.path.dirname(path) or ".")


def link_atomically(source: str, target: str, draft_name: str) -> None:
    """Make `target` another name of the file `source`, in the place of what it was. Nothing is written but names.

    `draft_name` must be unique to the caller. Where there are no hard links, `target` becomes a durable copy.
    """
    draft = _beside(target, draft_name + TEMPORARY_SUFFIX)
    try:
        os.link(source, draft)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        with open(source, "rb") as content, replace_atomically(target, durable=True) as file:
            file.write(content.read())
        return
    try:
        os.replace(draft, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)  # it is left if both were the same file already


def _beside(path: Path | str, name: str) -> str:
    return os.path.join(os.path.dirname(path), name)


def make_directories(path: str) -> None:
    """Make the directory `path` and those above it that are missing. Their names are durable."""
    missing = [path]
    while not os.path.isdir(parent := os.path.dirname(missing[-1]) or "."):
        missing.append(parent)
    os.makedirs(path, exist_ok=True)
    for made in missing:
        sync_directory(os.path.dirname(made) or ".")


@contextlib.contextmanager
def no_power_cuts() -> Iterator[None]:
    """Within the block, this process does not wait for disks: for jobs that only a test loses."""
    global _syncs
    before, _syncs = _syncs, False
    try:
        yield
    finally:
        _syncs = before


def sync_file(file: BinaryIO) -> None:
    """Make what was written to `file` durable."""
    file.flush()
    if _syncs:
        os.fsync(file.fileno())


def sync_directory(directory: Path | str) -> None:
    """Make the names in `directory` durable."""
    if not _syncs:
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
