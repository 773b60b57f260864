"""Finds the savepoints in a directory, local or remote."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as dataclass_replace

from headwater.checkpoint.paths import MANIFESTS
from headwater.checkpoint.savepoint.savepoint import SavepointInfo, Where, is_savepoint, savepoint_info
from headwater.checkpoint.storage.base import StorageSpec, open_storage
from headwater.common.errors import CheckpointError, StorageError


@dataclass(frozen=True)
class FoundSavepoint:
    """A directory with the marker of a savepoint."""

    path: str
    info: SavepointInfo | None
    problem: str = ""
    """Why it cannot be used. Then `info` is None."""


def savepoints_in(directory: Where) -> list[FoundSavepoint]:
    """Return the directory itself if it is a savepoint, and the savepoints directly in it, by name; maybe none.

    Does not look into a job's checkpoint directory: the copy in there (copied_checkpoint.py) belongs to the job.
    """
    storage = open_storage(directory)
    names = sorted(storage.directories()) if not storage.list(MANIFESTS) else []
    candidates = [storage.url, *(f"{storage.url}/{name}" for name in names)]
    found: list[FoundSavepoint] = []
    for url in candidates:
        where = dataclass_replace(directory, url=url) if isinstance(directory, StorageSpec) else url
        if not is_savepoint(where):
            continue
        try:
            found.append(FoundSavepoint(url, savepoint_info(where)))
        except StorageError:
            raise
        except CheckpointError as error:
            found.append(FoundSavepoint(url, None, str(error)))
    return found
