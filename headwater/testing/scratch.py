"""Directories that go away with what uses them."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import weakref


def scratch_directory(owner: object, prefix: str) -> str:
    """Make a directory that lives as long as `owner`, at most as long as this process.

    Copies of `owner` in other processes do not keep it, and do not remove it.
    """
    directory = scratch_path(owner, prefix)
    os.mkdir(directory, 0o700)
    return directory


def scratch_path(owner: object, prefix: str) -> str:
    """As `scratch_directory`, but whoever first writes there makes it: an owner that nobody uses leaves nothing."""
    directory = os.path.join(tempfile.gettempdir(), f"{prefix}{uuid.uuid4().hex}")
    weakref.finalize(owner, _remove, directory, os.getpid())
    return directory


def _remove(directory: str, maker: int) -> None:
    if os.getpid() == maker:  # a forked child inherits the finalizer, but not the directory
        shutil.rmtree(directory, ignore_errors=True)
