"""The id of the job that owns a checkpoint directory, from its first start on.

Sinks name what they have not committed yet by it. A driver that dies before its first manifest leaves such things too:
the next one can clean up after it only if it has the same id.
"""

from __future__ import annotations

from typing import Final

from headwater.checkpoint.paths import CheckpointLayout, validate_name
from headwater.common.errors import CheckpointError, HeadwaterError

_FILE: Final = "JOB"


def job_id_of(layout: CheckpointLayout, proposed: str) -> str:
    """The id that the directory's first job took; `proposed`, from now on, if this is the first."""
    storage = layout.storage
    try:
        storage.write_once(_FILE, proposed.encode())
        return proposed
    except FileExistsError:
        found = storage.read(_FILE)
    except OSError as error:
        raise CheckpointError(f"{layout.root}/{_FILE} cannot be written: {error.strerror or error}") from error
    try:
        return validate_name(found.decode(), "job id")
    except (UnicodeDecodeError, HeadwaterError) as error:
        raise CheckpointError(f"{layout.root}/{_FILE} does not hold a job id but {found[:80]!r}") from error
