"""Which savepoints a job is writing, so that its next start removes what a killed one left of them.

A savepoint is written where its user likes, among those of other jobs. So a note in the job's own directory says where,
as long as it is being written: only what is named there, and is not whole, is deleted.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Final

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.savepoint.savepoint import Where, discard_unfinished
from headwater.checkpoint.storage.base import StorageSpec, is_remote
from headwater.checkpoint.storage.sealed import BrokenSealError, seal, unseal
from headwater.common.errors import HeadwaterError, StorageError

log = logging.getLogger(__name__)

_FOLDER: Final = "unfinished"
_MAGIC: Final = b"HWUNFIN\0"
_FORMAT_VERSION: Final = 1


@contextlib.contextmanager
def note_unfinished(layout: CheckpointLayout, target: Where) -> Iterator[None]:
    """While the block runs, the directory of the job says that it writes a savepoint to `target`."""
    storage, name = layout.storage, f"{_FOLDER}/{secrets.token_hex(8)}.savepoint"
    try:
        storage.create((_FOLDER,))
        with storage.write(name, durable=False) as file:
            url = target.url if isinstance(target, StorageSpec) else str(target)
            file.write(seal(_MAGIC, _FORMAT_VERSION, url.encode()))
    except (OSError, StorageError) as error:
        log.warning("%s/%s cannot be written: %s; if the job is killed now, it leaves files", storage.url, name, error)
    yield
    # Not after an error that nobody expected: then something may be left.
    with contextlib.suppress(OSError, StorageError):
        storage.delete(name)


def remove_unfinished(layout: CheckpointLayout, options: Mapping[str, Any]) -> None:
    """Delete what is left of savepoints that were not finished. `options` open remote ones.

    Called by the one driver of the directory, when all partitions have loaded their state. A note that is damaged
    names nothing: it stays, and nothing is deleted.
    """
    storage = layout.storage
    for name in storage.list(_FOLDER):
        note = f"{_FOLDER}/{name}"
        try:
            url = unseal(_MAGIC, (_FORMAT_VERSION,), storage.read(note), "note of a savepoint").decode()
            if discard_unfinished(StorageSpec(url, options) if is_remote(url) else url):
                storage.delete(note)
        except (OSError, HeadwaterError, BrokenSealError) as error:
            log.warning("what %s/%s names could not be removed: %s", storage.url, note, error)
