"""A start from a checkpoint of a job that still runs.

The running job deletes its old checkpoints, long before the slots of the new job could read them. So the new job first
copies the checkpoint into its own directory, and deletes the copy when it has a checkpoint of its own.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.savepoint.savepoint import (
    MARKER,
    Savepoint,
    Where,
    discard_unfinished,
    dispose_savepoint,
    is_savepoint,
    left_of_deletion,
    open_savepoint,
    savepoint_info,
    write_savepoint,
)
from headwater.checkpoint.start.directory_lock import in_use
from headwater.checkpoint.storage.base import StorageSpec
from headwater.common.errors import CheckpointError

_FOLDER = "fork"


class Fork:
    """The copy of another job's checkpoint in `own`, this job's checkpoint directory."""

    def __init__(self, own: StorageSpec | Path) -> None:
        self._where: Where
        if isinstance(own, StorageSpec):
            self._where = dataclasses.replace(own, url=f"{own.url}/{_FOLDER}")
        else:
            self._where = own / _FOLDER

    @property
    def where(self) -> Where:
        return self._where

    def is_there(self) -> bool:
        return is_savepoint(self._where)

    def holds(self, savepoint: Savepoint) -> bool:
        """Return True if `savepoint` is this copy."""
        return str(savepoint.layout.root) == str(CheckpointLayout(self._where).root)

    def of(self, given: Savepoint) -> Savepoint:
        """Return what to start from: `given`, or a copy of it if a running job may delete it meanwhile."""
        if given.is_savepoint or not in_use(given.layout):
            return given
        self.remove()
        try:
            write_savepoint(given.layout, given.manifest, self._where, output_committed=given.output_committed)
        except CheckpointError as error:
            raise CheckpointError(
                f"checkpoint {given.path} cannot be copied ({error}). The job that retains it runs, and may have "
                "deleted it just now: name a newer one, or let that job make a savepoint and start from it"
            ) from error
        return open_savepoint(self._where)

    def left(self) -> Savepoint | None:
        """The copy that an earlier start made, if it was not deleted since."""
        if not self.is_there() or left_of_deletion(self._where) is not None:
            return None
        return open_savepoint(self._where)

    def never_was(self) -> bool:
        """Whether no start can have made one: the directory has no file but its lock. In a store that is not known."""
        if not isinstance(self._where, Path):
            return False
        own = self._where.parent
        return not any(path.is_file() and path != CheckpointLayout(own).lock for path in own.rglob("*"))

    def why_not(self) -> str:
        """What is wrong if none is left."""
        if not self.is_there():
            return f"{CheckpointLayout(self._where).root}/{MARKER} is missing"
        try:
            savepoint_info(self._where)
        except CheckpointError as error:
            return str(error)
        return "it is there by now"

    def remove(self) -> None:
        """Delete the copy, if there is one, and what is left of one that was never finished."""
        discard_unfinished(self._where)
        if self.is_there():
            dispose_savepoint(self._where)
