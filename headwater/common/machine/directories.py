"""Directories of files that go together."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def remove_directory(directory: Path, *, last: str) -> None:
    """Delete `directory` and all its content, the file `last` after everything else.

    As long as anything is left, `last` is: after an interruption it tells what must still be deleted. Raises OSError if
    something cannot be deleted.
    """
    for entry in list(os.scandir(directory)):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        elif entry.name != last:
            os.unlink(entry.path)
    (directory / last).unlink(missing_ok=True)
    directory.rmdir()
