"""A job as its checkpoint directory shows it, on RocksDB: what `old_job.py` is for the heap."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.snapshot.native import NativeDatabase, NativeSnapshot, UploadedFiles
from headwater.state.rocksdb.backend import RocksDBKeyedStateBackend
from headwater.state.rocksdb.options import RocksDBOptions
from tests.unit.checkpoint.old_job import OldJob


class NativeJob(OldJob):
    """Writes deltas as any job does, and native snapshots on request."""

    def __init__(
        self,
        root: Path,
        uids: Iterable[str],
        parallelism: int,
        max_parallelism: int = 16,
        layout: CheckpointLayout | None = None,
    ) -> None:
        super().__init__(root / "checkpoints", uids, parallelism, max_parallelism)
        self.layout = layout or self.layout
        self.options = RocksDBOptions(8 << 20, root / "local")
        for states in self.states.values():
            for state in states:
                heap: Any = state
                heap.keyed = RocksDBKeyedStateBackend(
                    state.keyed.uid, max_parallelism, state.keyed.key_groups, self.options
                )
        self.uploaded = [UploadedFiles() for _ in range(parallelism)]
        self.sent: list[str] = []
        """Names of the files of the last native snapshots that were not there before."""

    def snapshot_natively(self) -> None:
        """From the next manifest on the chains begin with native snapshots of the state as it is."""
        self.sent = []
        for index in range(self.parallelism):
            own = [states[index] for states in self.states.values()]
            databases = [
                NativeDatabase(each.keyed.uid, each.keyed.key_groups, each.keyed.new_native_checkpoint())  # type: ignore[attr-defined]
                for each in own
            ]
            sections = [section for each in own for section in each.unkeyed.full_sections()]
            snapshot = NativeSnapshot(
                self.layout,
                self.layout.new_snapshot(1, index, self.epoch, f"n{self.epoch}", "native"),
                {"epoch": self.epoch, "key_groups": (0, self.max_parallelism)},
                databases,
                sections,
                self.uploaded[index].named_by(self.chains[index]),
            )
            self.sent += snapshot.names
            self.chains[index] = [snapshot.write()]
            self.uploaded[index].replace_with(snapshot.files)

    def close(self) -> None:
        for states in self.states.values():
            for state in states:
                state.keyed.close()  # type: ignore[attr-defined]
