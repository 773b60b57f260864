"""One error for a full local disk, with the place and the way out."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from headwater.common.errors import LocalDiskError

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""Errors of a disk that takes no more data: full, over a quota or a limit of the process, read-only."""


def says_no_room(text: str) -> bool:
    """Return True if the text of an error without a number means such a disk."""
    return any(os.strerror(number) in text for number in NO_ROOM)


@contextmanager
def room_for(what: str, place: str | Path, cure: str) -> Iterator[None]:
    """Raise LocalDiskError if the disk takes no more data in the block. Its text has `what`, `place` and `cure`.

    Other errors pass as they are.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise LocalDiskError(f"{what} cannot be written to {place}: {error.strerror}; {cure}") from error
