"""A savepoint that a job was started from, and was given to keep (claim mode `CLAIM`).

It goes when the job has a checkpoint of its own. Whatever interrupts that, what is left is still known to have been one
(savepoint.py), so the next checkpoint, or the next start of the job with the same settings, finishes it.
"""

from __future__ import annotations

import logging

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.savepoint.savepoint import Where, dispose_savepoint, left_of_deletion
from headwater.common.errors import HeadwaterError

log = logging.getLogger(__name__)


class ClaimedSavepoint:
    """Called with each manifest of the job that has become durable; deletes the savepoint with the first of them."""

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
    """Called when a job that has checkpoints of its own starts again: delete what is left of the savepoint it claimed.

    A whole one stays. It may be another that has come to be in that place since.
    """
    try:
        left = left_of_deletion(where)
        if left is not None:
            dispose_savepoint(left)
            log.info("the claimed savepoint, which had been deleted in part, is deleted")
    except HeadwaterError as error:
        log.warning("what may be left of the claimed savepoint cannot be deleted: %s", error)
