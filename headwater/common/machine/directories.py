"""Directories of files that go together."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def remove_directory(directory: Path, *, last: str) -> None:
    """Delete all of `directory`, its file `last` after everything else: while there is anything left, so is that file.

    Whoever finds `last` in a directory can so finish what was interrupted. Raises OSError where it gets no further.
    """
    for entry in list(os.scandir(directory)):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        elif entry.name != last:
            os.unlink(entry.path)
    (directory / last).unlink(missing_ok=True)
    directory.rmdir()
