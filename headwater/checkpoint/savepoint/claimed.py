"""A savepoint that belongs to the job that was started from it (claim mode `CLAIM`).

The job deletes it when it has a checkpoint of its own. If the deletion is interrupted, the rest is still recognisable
as a savepoint (savepoint.py): the next checkpoint, or the next start of the job with the same settings, deletes it.
"""

from __future__ import annotations

import logging

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.savepoint.savepoint import Where, dispose_savepoint, left_of_deletion
from headwater.common.errors import HeadwaterError

log = logging.getLogger(__name__)


class ClaimedSavepoint:
    """Called with each durable manifest of the job. Deletes the savepoint at the first call that succeeds."""

    def __init__(self, where: Where) -> None:
        self._where: Where | None = where
        self._warned = False

    def __call__(self, _: Manifest) -> None:
        if self._where is None:
            return
        try:
            dispose_savepoint(self._where)
            self._where = None
        except HeadwaterError as error:
            if not self._warned:  # once: checkpoints may come every second
                log.warning("the claimed savepoint is not deleted yet, the next checkpoint tries again: %s", error)
                self._warned = True


def finish_deletion(where: Where) -> None:
    """Delete the rest of a claimed savepoint. Called when a job that has checkpoints of its own starts again.

    A whole savepoint stays: it may be a newer one in the same place.
    """
    try:
        left = left_of_deletion(where)
        if left is not None:
            dispose_savepoint(left)
            log.info("the claimed savepoint, which had been deleted in part, is deleted")
    except HeadwaterError as error:
        log.warning("the rest of the claimed savepoint, if any, cannot be deleted: %s", error)
