"""Makes complete files visible, by renaming them.

Readers may take a visible file away at once. After a crash the same files are committed again; then one that has
neither its pending nor its final name was either committed and taken, or deleted while it was hidden. Two facts tell
which: a note beside the output says that this very commit was begun before, and files are committed in their order, so
that no earlier try has got behind a file that is still pending (docs/decisions/0017-commits-that-are-repeated.md).
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.checkpoint.paths import validate_name
from headwater.checkpoint.storage.durable_file import sync_directory
from headwater.common.connector import Committer
from headwater.common.errors import CheckpointError

log = logging.getLogger(__name__)

PENDING_SUFFIX: Final = ".inprogress"
MAKE_ROOM: Final = "make room there. What is visible stays as it is, and the job goes on from its last checkpoint"


@dataclass(frozen=True)
class FileCommittable:
    """A complete file under its pending name."""

    directory: str
    pending_name: str
    final_name: str
    length: int


@dataclass
class EarlierTry:
    """What is known of earlier tries of a commit, while its files are gone through in their order."""

    got_here: bool
    """Whether one may have made the file visible that is next."""


class FileCommitter(Committer):
    """Renames pending files. Idempotent: a file that has its final name is done, and so is one that was taken away."""

    def __init__(self, base_path: str) -> None:
        self._base_path = base_path
        self._note: str | None = None

    def commit(self, committables: list[Any]) -> None:
        if committables:
            self._commit(committables, EarlierTry(self._begun_before(committables)))

    def _commit(self, committables: list[Any], earlier: EarlierTry) -> None:
        for committable in committables:
            make_visible(committable, earlier)
        for directory in {committable.directory for committable in committables}:
            sync_if_there(directory)

    def _begun_before(self, committables: Sequence[FileCommittable]) -> bool:
        """Whether this very commit was tried before. Notes that it is, in place of the commit before it.

        The note is in the output's own directory: one that is not mounted proves nothing. It has a pending file's name,
        with more in it: `find_leftovers` finds it, too. It need not be durable: if it is lost, the worst is an error.
        """
        name = f".committing-{digest(committables)}-{committables[0].pending_name.lstrip('.')}"
        note = os.path.join(self._base_path, name)
        before, self._note = self._note, note
        if before in (None, note):
            # Only the first commit of a driver, and one that failed in this driver, can have been tried before.
            if os.path.exists(note):
                return True
        else:
            with contextlib.suppress(OSError):
                os.rename(before, note)
                return False
        with contextlib.suppress(OSError):  # no room, no directory: nothing that could keep a file from being renamed
            open(note, "xb").close()
        return False

    def find_leftovers(self, job_id: str) -> list[Any]:
        """Return the pending files of `job_id`. Files of manifests have their final names by now: these are garbage."""
        ending = f".{validate_name(job_id, 'job id')}{PENDING_SUFFIX}"
        return [
            os.path.join(directory, name)
            for directory, _, names in os.walk(self._base_path)
            for name in names
            if name.startswith(".") and name.endswith(ending)
        ]

    def delete_leftovers(self, leftovers: list[Any]) -> None:
        for path in leftovers:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def digest(committables: Sequence[FileCommittable]) -> str:
    """Tells these files from any others."""
    return hashlib.sha256("/".join(each.final_name for each in committables).encode()).hexdigest()[:12]


def sync_if_there(directory: str) -> None:
    """Make the names in `directory` durable. A reader may have taken all of it."""
    with contextlib.suppress(FileNotFoundError):
        sync_directory(directory)


def make_visible(committable: FileCommittable, earlier: EarlierTry) -> None:
    """Give one file its final name. Raises CheckpointError if it is lost, or is not what was prepared."""
    pending = os.path.join(committable.directory, committable.pending_name)
    final = os.path.join(committable.directory, committable.final_name)
    try:
        length: int | None = os.stat(pending).st_size
    except FileNotFoundError:
        length = None
    if length is None:
        if os.path.exists(final):
            return
        if earlier.got_here:
            log.warning("output file %s is gone: it was committed before, and whoever reads it has taken it", final)
            return
        raise CheckpointError(
            f"output file {final} cannot be made visible: neither it nor its pending form {pending} exists, so "
            "somebody else deleted or moved it. Put either one back and start the job again"
        )
    earlier.got_here = False
    if os.path.exists(final):
        raise CheckpointError(
            f"output file {final} exists while its pending form {pending} does too; remove one of them"
        )
    if length != committable.length:
        raise CheckpointError(
            f"pending output file {pending} has {length:,} bytes, its manifest says {committable.length:,}; it was "
            "changed from outside. Restore it from a copy"
        )
    os.rename(pending, final)
