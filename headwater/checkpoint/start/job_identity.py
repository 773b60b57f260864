"""The id of the job that owns a checkpoint directory, from its first start on.

Sinks put the id into the names of uncommitted output. A driver that dies before its first manifest leaves such output
behind, and the next driver can delete it only if it has the same id.
"""

from __future__ import annotations

import re
from typing import Final

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.storage.sealed import BrokenSealError, seal, unseal
from headwater.common.errors import CheckpointError

_FILE: Final = "JOB"
_MAGIC: Final = b"HWJOBID\0"
_FORMAT_VERSION: Final = 1
_WRITTEN_BY_AN_EARLIER_VERSION: Final = re.compile(rb"[0-9a-f]{32}")


def job_id_of(layout: CheckpointLayout, proposed: str) -> str:
    """Return the id that the directory already has; otherwise give it `proposed` and return that."""
    storage = layout.storage
    try:
        storage.write_once(_FILE, seal(_MAGIC, _FORMAT_VERSION, proposed.encode()))
        return proposed
    except FileExistsError:
        found = storage.read(_FILE)
    except OSError as error:
        raise CheckpointError(f"{layout.root}/{_FILE} cannot be written: {error.strerror or error}") from error
    try:
        return unseal(_MAGIC, (_FORMAT_VERSION,), found, "job id").decode()
    except BrokenSealError as error:
        if _WRITTEN_BY_AN_EARLIER_VERSION.fullmatch(found):
            return found.decode()
        raise CheckpointError(
            f"{layout.root}/{_FILE} is damaged: {error}. Restore the file from a copy, or delete it: then the job gets "
            "another id, and what its sinks left unfinished under the old one stays where it is"
        ) from error
