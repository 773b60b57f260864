"""The checkpoints that a job retains. Each can be opened like a savepoint, and another job can start from it."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.paths import CheckpointLayout, epoch_of_file_name
from headwater.checkpoint.savepoint.savepoint import Where
from headwater.checkpoint.storage.base import Location
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError


@dataclass(frozen=True)
class RetainedCheckpoint:
    """One checkpoint in a job's directory."""

    path: Location
    """Its manifest. Give it to `open_savepoint`, or as execution.state-recovery.path."""
    epoch: int
    job_name: str = ""
    created_ms: int = 0
    partitions: int = 0
    full_bytes: int = 0
    """Size of all files that a restore reads."""
    delta_bytes: int = 0
    """Size of the files that were written for this checkpoint."""
    finished: bool = False
    """The job's input had ended."""
    problem: str = ""
    """Why the manifest cannot be read. Then only `path` and `epoch` are set."""


def retained_checkpoints(directory: Where) -> list[RetainedCheckpoint]:
    """Return the checkpoints in `directory`, oldest first, without those that a running job deletes meanwhile."""
    store = ManifestStore(CheckpointLayout(directory))
    epochs = store.epochs()
    if not epochs:
        raise CheckpointError(f"{store.layout.root} has no manifest; expected the checkpoint directory of a job")
    found: list[RetainedCheckpoint] = []
    for epoch in epochs:
        path = store.layout.manifest(epoch)
        try:
            found.append(_described(path, store.load(epoch)))
        except CheckpointError as error:
            if epoch in store.epochs():
                found.append(RetainedCheckpoint(path, epoch, problem=str(error)))
    return found


def _described(path: Location, manifest: Manifest) -> RetainedCheckpoint:
    snapshots = [ref for record in manifest.partitions for ref in record.snapshots]
    sizes = [(ref.epoch, ref.length) for ref in snapshots]
    sizes += [(epoch_of_file_name(file.name) or 0, file.length) for ref in snapshots for file in ref.files]
    for source in manifest.sources.values():
        sizes += [(ref.epoch, ref.length) for ref in source.finished_splits.segments]
    return RetainedCheckpoint(
        path=path,
        epoch=manifest.epoch,
        job_name=manifest.job_name,
        created_ms=manifest.created_ms,
        partitions=len(manifest.partitions),
        full_bytes=sum(length for _, length in sizes),
        delta_bytes=sum(length for epoch, length in sizes if epoch == manifest.epoch),
        finished=manifest.finished,
    )
