"""What a restore does about damaged files: it reads the same state from other files, or says what is still whole.

`repair` decides which files to read instead; this module does the I/O.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence

from headwater.checkpoint.finished_splits import FinishedSplits
from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.restore.repair import another_chain
from headwater.checkpoint.restore.rescale import PartitionRestore
from headwater.checkpoint.snapshot.file import SnapshotRef, read_sections
from headwater.checkpoint.snapshot.native_reader import check_native_file
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError, DamagedSnapshotError
from headwater.common.ids import Place

log = logging.getLogger(__name__)


class RestoreRepair:
    """The repair of one restore of one partition.

    Load the snapshots that `chain` or `restore` returns. If a file is damaged, discard what was loaded, call `found`,
    and start over. This ends, because no file is found damaged twice.
    """

    def __init__(self) -> None:
        self._damaged: dict[str, DamagedSnapshotError] = {}  # {name of the file: what was wrong}
        self._others: dict[Place, tuple[SnapshotRef, ...]] = {}

    @property
    def made(self) -> bool:
        """True if a chain was replaced: the chain of the job's last checkpoint has a damaged file."""
        return bool(self._others)

    def found(self, error: DamagedSnapshotError) -> None:
        """Note a damaged file. The caller must discard what it loaded and start over."""
        if error.name in self._damaged:
            raise error
        self._damaged[error.name] = error

    def chain(self, layout: CheckpointLayout, place: Place, wanted: Sequence[SnapshotRef]) -> tuple[SnapshotRef, ...]:
        """Return the chain to load instead of `wanted`, the chain of partition `place` in `layout`.

        That is `wanted` itself while none of its files is known to be damaged. Raises CheckpointError, which says what
        a person can do, if no other retained files have the same state.
        """
        needed = {name for ref in wanted for name in (ref.name, *(file.name for file in ref.files))}
        damaged = [error for name, error in self._damaged.items() if name in needed]
        if not damaged:
            return tuple(wanted)
        manifests = retained_manifests(layout)
        other = another_chain(wanted, place, self._damaged.keys(), manifests)
        if other is None:
            last = list(self._damaged.values())[-1]  # maybe a file of a chain that replaced `wanted`
            also = f" It was to stand in for another file: {damaged[0]}." if last not in damaged else ""
            raise CheckpointError(f"{last}.{also} {_what_is_whole(layout, manifests)}") from last
        self._others[place] = other
        return other

    def restore(self, restore: PartitionRestore) -> PartitionRestore:
        """Like `chain`, for a partition that restores the state of partitions of another job or shape."""
        if not self._damaged:
            return restore
        parts = [
            dataclasses.replace(
                part,
                snapshots=self.chain(CheckpointLayout(part.directory), part.place, part.snapshots),
            )
            for part in restore.parts
        ]
        return dataclasses.replace(restore, parts=tuple(parts))

    def report(self) -> None:
        """Log every replaced chain. Call it after the restore has succeeded."""
        for (stage, partition), others in self._others.items():
            log.warning(
                "repaired: stage %d partition %d has the state of its checkpoint, read from %s, because: %s",
                stage,
                partition,
                ", ".join(ref.name for ref in others),
                "; ".join(map(str, self._damaged.values())),
            )


def retained_manifests(layout: CheckpointLayout) -> list[Manifest]:
    """Return the readable manifests that count, oldest first. Never raises: the caller is handling another error."""
    store = ManifestStore(layout)
    manifests: list[Manifest] = []
    try:
        for epoch in store.epochs():
            try:
                manifests.append(store.load(epoch))
            except CheckpointError as error:  # damaged as well, or deleted by the job that runs there
                log.warning("a repair ignores a manifest that cannot be read: %s", error)
    except (CheckpointError, OSError) as error:
        log.warning("nothing can be repaired, because manifests cannot be listed: %s", error)
        return []
    return manifests


def check_files(layout: CheckpointLayout, manifest: Manifest) -> None:
    """Read every file that `manifest` names. Raises CheckpointError if one is missing or damaged."""
    for record in manifest.partitions:
        for ref in record.snapshots:
            for _ in read_sections(layout.snapshot(ref.name), ref):
                pass
            for file in ref.files:
                check_native_file(layout, file, ref)
    for uid, source in manifest.sources.items():
        FinishedSplits.restore(layout, uid, source.finished_splits)


def _what_is_whole(layout: CheckpointLayout, manifests: Sequence[Manifest]) -> str:
    for manifest in reversed(manifests):
        try:
            check_files(layout, manifest)
        except (CheckpointError, OSError):
            continue
        return (
            "No other retained files have the same state. The newest retained checkpoint with all its files whole is "
            f"that of epoch {manifest.epoch}: a new job, with a directory of its own, can start from "
            f"{layout.manifest(manifest.epoch)} (execution.state-recovery.path), and gives the output since then again"
        )
    return "No other retained files have the same state, and no retained checkpoint has all its files whole"
