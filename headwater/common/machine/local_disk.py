"""A disk that runs full: one error, with the place and the way out, wherever something is written to a local disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from headwater.common.errors import LocalDiskError

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""What the kernel says of a disk that takes nothing more: full, over a quota or the process's limit, read-only."""


def says_no_room(text: str) -> bool:
    """Whether an error that has no number tells of such a disk."""
    return any(os.strerror(number) in text for number in NO_ROOM)


@contextmanager
def room_for(what: str, place: str | Path, cure: str) -> Iterator[None]:
    """Say `what` could not be written at `place`, and the `cure`, if the disk takes nothing more in the block.

    Other errors pass as they are.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise LocalDiskError(f"{what} cannot be written to {place}: {error.strerror}; {cure}") from error
