"""Makes complete files visible, by renaming them, and lets part files grow while they are hidden.

A reader may take a visible file away at once. After a crash the same files are committed again, and a file with neither
its pending nor its final name was either committed and taken, or deleted while it was hidden. Two facts tell which: a
note beside the output says if this commit was tried before; and files are committed in order, so no earlier try got
past a file that is still pending (docs/decisions/0017-commits-that-are-repeated.md).
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.checkpoint.paths import validate_name
from headwater.common.connector import CheckpointMoment, Committer, CommitterContext, Selection
from headwater.common.errors import CheckpointError
from headwater.datastream.connectors.file_store import FileStore
from headwater.datastream.connectors.part_files import (
    FileCommittable,
    GrowingPart,
    GrownPart,
    HeldFile,
    RollingPolicy,
    roll,
)

log = logging.getLogger(__name__)

PENDING_SUFFIX: Final = ".inprogress"


@dataclass
class EarlierTry:
    """What is known about earlier tries of a commit. Changes from file to file, in commit order."""

    got_here: bool
    """True if an earlier try may have made the next file visible."""


class FileCommitter(Committer):
    """Renames pending files. Idempotent: a file that has its final name, or was taken away after it had, is done."""

    def __init__(self, store: FileStore, rolling_policy: RollingPolicy) -> None:
        self.store = store
        self._policy = rolling_policy
        self._note: str | None = None
        self._job_id: str | None = None
        self._spared: set[str] = set()

    def open(self, context: CommitterContext) -> None:
        self._job_id = context.job_id

    def select(self, prepared: list[Any], held: list[Any], moment: CheckpointMoment) -> Selection:
        return roll(prepared, held, moment, self._policy, appends=self.store.appends, job_id=self._job_id)

    def commit(self, committables: list[Any]) -> None:
        files = [each.whole() if isinstance(each, GrowingPart | HeldFile) else [each] for each in committables]
        flat = [file for group in files for file in group]
        if flat:
            self._commit(flat, EarlierTry(self._begun_before(flat)))

    def _commit(self, committables: list[Any], earlier: EarlierTry) -> None:
        for committable in committables:
            if isinstance(committable, GrownPart):
                self.grow(committable, earlier)
            else:
                self.make_visible(committable, earlier)
        self.store.sync({committable.directory for committable in committables})

    def _begun_before(self, committables: Sequence[FileCommittable | GrownPart]) -> bool:
        """Return True if this commit was tried before. Leaves a note of it, and removes that of the commit before.

        The note is in the output's directory: if that is not mounted, there is no note. It ends like a pending file's
        name, so `find_leftovers` finds it. It need not be durable: without it, the worst is an error.
        """
        name = f".committing-{digest(committables)}-{committables[0].pending_name.lstrip('.')}"
        note = f"{self.store.base_path}/{name}"
        before, self._note = self._note, note
        if before is None or before == note:
            # Only the first commit of a driver, and one that failed in this driver, can have been tried before.
            if self.store.exists(note):
                return True
        elif self.store.renames:
            with contextlib.suppress(OSError):
                self.store.rename(before, note)
                return False
        with contextlib.suppress(OSError):  # no room, or no directory: files may be renamed without it
            self.store.touch(note)
        if before is not None and before != note and not self.store.renames:
            self.store.delete(before)
        return False

    def holding(self, held: list[Any]) -> None:
        self._spared = {file.pending_path for each in held for file in each.files()}

    def find_leftovers(self, job_id: str) -> list[Any]:
        """Return the pending files of `job_id`. Files of manifests have their final names by now, or are held."""
        ending = f".{validate_name(job_id, 'job id')}{PENDING_SUFFIX}"
        return [
            path
            for path in self.store.walk()
            if path not in self._spared and path.rpartition("/")[2].startswith(".") and path.endswith(ending)
        ]

    def delete_leftovers(self, leftovers: list[Any]) -> None:
        for path in leftovers:
            self.store.delete(path)

    # --- the steps

    def grow(self, part: GrownPart, earlier: EarlierTry) -> None:
        """Add pieces to a hidden file, and delete them. Raises CheckpointError if anything of it is lost."""
        target, pieces = part.target.pending_path, [piece.pending_path for piece in part.pieces]
        sizes = [self.store.size(piece) for piece in pieces]
        found = self.store.size(target)
        complete = found is not None and found >= part.target.length
        if None not in sizes:
            earlier.got_here = False
            for piece, size in zip(part.pieces, sizes, strict=True):
                if size != piece.length:
                    raise _changed(piece, size)
            if (found or 0) < part.at or (found or 0) > part.target.length:
                raise CheckpointError(
                    f"pending output file {target} has {found or 0:,} bytes, its manifest says {part.at:,} before and "
                    f"{part.target.length:,} after this checkpoint; it was changed from outside. Restore it from a copy"
                )
            self.store.grow(target, part.at, pieces)
        elif not complete and not (part.last and found is None and self._was_visible(part, sizes, earlier)):
            gone = pieces[sizes.index(None)]
            raise CheckpointError(
                f"pending output file {gone} is gone, so it cannot become part of {part.target.final_path}; somebody "
                "else deleted or moved it. Put it back and start the job again"
            )
        for path in pieces:
            self.store.delete(path)

    def _was_visible(self, part: GrownPart, sizes: Sequence[int | None], earlier: EarlierTry) -> bool:
        """Pieces go before the file is renamed: whether an earlier try has done both."""
        taken = earlier.got_here and all(size is None for size in sizes)
        return taken or self.store.exists(part.target.final_path)

    def make_visible(self, committable: FileCommittable, earlier: EarlierTry) -> None:
        """Give one file its final name. Raises CheckpointError if it is lost, or is not what was prepared."""
        pending, final = committable.pending_path, committable.final_path
        length = self.store.size(pending)
        if length is None:
            if self.store.exists(final):
                return
            if earlier.got_here:
                log.warning("output file %s is gone: it was committed before, and whoever reads it has taken it", final)
                return
            raise CheckpointError(
                f"output file {final} cannot be made visible: neither it nor its pending form {pending} exists, so "
                "somebody else deleted or moved it. Put either one back and start the job again"
            )
        earlier.got_here = False
        if self.store.renames and self.store.exists(final):
            raise CheckpointError(
                f"output file {final} exists while its pending form {pending} does too; remove one of them"
            )
        if length > committable.length and committable.job_id not in ("", self._job_id):
            self._show_beginning(committable)  # the job whose checkpoint this one starts from has gone on
            return
        if length != committable.length:
            raise _changed(committable, length)
        self.store.rename(pending, final)

    def _show_beginning(self, committable: FileCommittable) -> None:
        draft_path = f"{committable.directory}/.copy-{uuid.uuid4().hex}.{self._job_id}{PENDING_SUFFIX}"
        draft = self.store.create(draft_path)
        with self.store.open(committable.pending_path) as content:
            left = committable.length
            while left and (block := content.read(min(left, 1 << 20))):
                draft.file.write(block)
                left -= len(block)
        draft.complete()
        self.store.rename(draft_path, committable.final_path)


def _changed(committable: FileCommittable, length: int | None) -> CheckpointError:
    return CheckpointError(
        f"pending output file {committable.pending_path} has {length or 0:,} bytes, its manifest says "
        f"{committable.length:,}; it was changed from outside. Restore it from a copy"
    )


def digest(committables: Sequence[FileCommittable | GrownPart]) -> str:
    """Return text that identifies these files."""
    names = "/".join(each.identity for each in committables)
    return hashlib.sha256(names.encode()).hexdigest()[:12]
