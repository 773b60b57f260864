"""Ways to break the engine on purpose, to see that the comparison of outputs notices.

Installed by the job's module in every process that imports it (driver, workers, slots), if the environment variable
says so: the engine itself knows nothing of it.
"""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

VARIABLE = "RECOVERY_TEST_SABOTAGE"


def commit_before_manifest() -> None:
    """Output becomes visible before the manifest is durable. Shows when the driver dies in between."""
    from headwater.checkpoint.store import ManifestStore
    from headwater.datastream.connectors.file_committer import FileCommitter
    from headwater.datastream.connectors.file_store import LocalFiles
    from headwater.datastream.connectors.part_files import RollingPolicy
    from headwater.runtime.epoch import fault

    write = ManifestStore.write

    def commit_then_write(self: ManifestStore, manifest: Any) -> Any:
        for items in manifest.committables.values():
            committables = [pickle.loads(item) for item in items]
            for directory in {committable.directory for committable in committables}:
                committer = FileCommitter(LocalFiles(directory), RollingPolicy.on_checkpoint_rolling_policy())
                committer.commit([each for each in committables if each.directory == directory])
        fault.reached("manifest-written", manifest.epoch)
        return write(self, manifest)

    ManifestStore.write = commit_then_write  # type: ignore[method-assign]


def skip_rollback() -> None:
    """A slot keeps what a failed attempt changed. Shows when a worker dies in the middle of an epoch."""
    from headwater.state.heap.backend import HeapKeyedStateBackend

    HeapKeyedStateBackend.rollback_epoch = HeapKeyedStateBackend.commit_epoch  # type: ignore[method-assign]


def drop_a_delta() -> None:
    """What slots changed in every fifth epoch is not persisted. Shows when a slot is restored."""
    from headwater.runtime.slot.slot import Slot

    sections = Slot._checkpoint_sections

    def forgetful(self: Slot, *, whole: bool) -> Any:
        found = sections(self, whole=whole)
        self._checkpoints_cut = getattr(self, "_checkpoints_cut", 0) + 1  # type: ignore[attr-defined]
        return [] if self._checkpoints_cut % 5 == 0 else found  # type: ignore[attr-defined]

    Slot._checkpoint_sections = forgetful  # type: ignore[method-assign]


def apply_an_epoch_twice() -> None:
    """A job that resumes goes back one manifest too far, to an epoch whose successor is visible already."""
    from headwater.checkpoint.paths import COMMITTED, NEWEST, manifest_name
    from headwater.checkpoint.store import ManifestStore

    latest = ManifestStore.latest

    def one_before(self: ManifestStore) -> Any:
        epochs = self.epochs()
        if len(epochs) > 1:
            # Its second name and the note of what is visible would tell.
            root = Path(str(self.layout.root))
            self.layout.manifest(epochs[-1]).unlink()
            (root / NEWEST).unlink()
            shutil.copy(root / manifest_name(epochs[-2]), root / NEWEST)
            (root / COMMITTED).unlink(missing_ok=True)
        return latest(self)

    ManifestStore.latest = one_before  # type: ignore[method-assign]


def send_an_epoch_twice() -> None:
    """The relay of the resident task gives every slot the input of epoch 4 twice."""
    from headwater.runtime.slot.relay import Relay

    call = Relay.call

    def twice(self: Relay, known: Any, place: Any, begin: Any, steps: Any) -> None:
        repeated = list(steps) * (2 if begin.attempt.epoch == 4 else 1)
        call(self, known, place, begin, iter(repeated))

    Relay.call = twice  # type: ignore[method-assign]


def use_a_reader_where_it_stands() -> None:
    """The resident task reads on with an open reader, wherever the epoch begins. Shows when an attempt fails."""
    from headwater.runtime.stage.readers import KeptReaders

    anew = KeptReaders.open

    def wherever(self: KeptReaders, source_id: int, source: Any, assignment: Any) -> Any:
        kept = self._kept.pop((source_id, assignment.split.split_id), None)
        return kept[0] if kept is not None else anew(self, source_id, source, assignment)

    KeptReaders.open = wherever  # type: ignore[method-assign]


SABOTAGES: dict[str, Callable[[], None]] = {
    sabotage.__name__: sabotage
    for sabotage in (
        commit_before_manifest,
        skip_rollback,
        drop_a_delta,
        apply_an_epoch_twice,
        send_an_epoch_twice,
        use_a_reader_where_it_stands,
    )
}


def install() -> None:
    """Break what the environment says, in this process."""
    wanted = os.environ.get(VARIABLE)
    if wanted:
        SABOTAGES[wanted]()
