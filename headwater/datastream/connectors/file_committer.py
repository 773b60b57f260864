"""Makes complete files visible, by renaming them."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import Any, Final

from headwater.checkpoint.paths import validate_name
from headwater.checkpoint.storage.durable_file import sync_directory
from headwater.common.connector import Committer
from headwater.common.errors import CheckpointError

PENDING_SUFFIX: Final = ".inprogress"
MAKE_ROOM: Final = "make room there. What is visible stays as it is, and the job goes on from its last checkpoint"


@dataclass(frozen=True)
class FileCommittable:
    """A complete file under its pending name."""

    directory: str
    pending_name: str
    final_name: str
    length: int


class FileCommitter(Committer):
    """Renames pending files. Idempotent: a file that has its final name is done."""

    def __init__(self, base_path: str) -> None:
        self._base_path = base_path

    def commit(self, committables: list[Any]) -> None:
        for committable in committables:
            make_visible(committable)
        for directory in {committable.directory for committable in committables}:
            sync_directory(directory)

    def find_leftovers(self, job_id: str) -> list[Any]:
        """Pending files of `job_id`. All that a manifest names have their final names by now: these attempts died."""
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


def make_visible(committable: FileCommittable) -> None:
    pending = os.path.join(committable.directory, committable.pending_name)
    final = os.path.join(committable.directory, committable.final_name)
    try:
        length: int | None = os.stat(pending).st_size
    except FileNotFoundError:
        length = None
    if length is None:
        if os.path.exists(final):
            return
        raise CheckpointError(
            f"output file {final} cannot be made visible: neither it nor its pending form {pending} exists, so "
            "somebody else deleted or moved it. Put either one back and start the job again"
        )
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
