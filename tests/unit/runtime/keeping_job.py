"""A slot whose checkpoints are retained, and what its state must be at each of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from headwater.checkpoint.manifest import Manifest, PartitionRecord
from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.checkpoint.store import ManifestStore
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.messages import PartitionAck
from headwater.runtime.slot.slot import Slot
from tests.unit.runtime.test_native_snapshots import LOOK, finish_upload
from tests.unit.runtime.test_slot import Driver

KEYS = "abcdefgh"
STAGE, PARTITION = 1, 0

Contents = dict[str, tuple[Any, list[Any], list[Any]]]
"""{key: (value, list, sorted map)}, as the function `Keep` yields them"""


class KeepingJob(Driver):
    """Runs epochs of random changes on a plan with `Keep`; full (or native) snapshots replace deltas on the way."""

    def __init__(self, plan: JobPlan, directory: Path, retained: int) -> None:
        super().__init__(plan, directory)
        assert self.layout is not None
        self.store = ManifestStore(self.layout)
        self.retained = retained
        self.oracle: dict[int, Contents] = {}
        """{epoch: what the state is at its end}"""
        self.slots: list[Slot] = []
        self._chance = random.Random(7)
        self._contents: Contents = {key: (None, [], []) for key in KEYS}
        self._full: SnapshotRef | None = None
        self._whole = False

    def new_slot(self) -> Slot:
        self.slots.append(super().new_slot())
        return self.slots[-1]

    def run(self, slot: Slot, epochs: int) -> None:
        for _ in range(epochs):
            records = []
            for key in self._chance.sample(KEYS, 3):
                _, elements, entries = self._contents[key]
                what: Any = "clear" if self._chance.random() < 0.25 else self._chance.randrange(100)
                if what == "clear":
                    self._contents[key] = (None, [], [])
                else:
                    elements = [*elements, what]
                    self._contents[key] = (what, elements, sorted({**dict(entries), what: len(elements)}.items()))
                records.append((key, what))
            self.epoch(slot, *records)
            finish_upload(slot)
            self.oracle[self.epoch_number] = dict(self._contents)

    def accept(self, ack: PartitionAck, *, cut: bool = True) -> None:
        full, ack.full = ack.full, None
        super().accept(ack, cut=cut)
        self._full = full or self._full
        self._whole = ack.part is not None and ack.part.whole

    def complete(self) -> None:
        if self._whole:
            self.snapshots, self._full = [], None
        super().complete()
        if self._full is not None:
            full, self._full = self._full, None
            self.snapshots = [full, *(ref for ref in self.snapshots if ref.epoch > full.epoch)]
        record = PartitionRecord(STAGE, PARTITION, list(self.snapshots))
        epoch = self.durable_epoch
        self.store.write(Manifest("job", "job", epoch, 1, 0, 0, "p", self.plan.max_parallelism, partitions=[record]))
        self.store.collect_garbage(self.retained)

    def restore(self, epoch: int) -> tuple[Slot, Contents]:
        """A new slot with the state of a retained checkpoint, and all that it holds then."""
        record = self.store.load(epoch).partition(STAGE, PARTITION)
        assert record is not None
        self.epoch_number = self.durable_epoch = epoch
        self.token = self.durable_token = f"manifest-{epoch}"
        self.in_flight, self.snapshots = None, list(record.snapshots)
        slot = self.new_slot()
        ack, results = self.attempt(slot, *((key, LOOK) for key in KEYS), cut=False)
        assert ack.restored
        return slot, {key: (value, elements, entries) for key, value, elements, entries in results}

    def names(self, epoch: int) -> set[str]:
        """The files of a retained checkpoint."""
        return self.store.load(epoch).snapshot_names()

    def path(self, name: str) -> Path:
        assert self.layout is not None
        path = self.layout.snapshot(name)
        assert isinstance(path, Path)
        return path

    def damage(self, name: str) -> None:
        """Change one byte."""
        content = bytearray(self.path(name).read_bytes())
        content[len(content) // 2] ^= 1
        self.path(name).unlink()  # it may be linked to a database's own file
        self.path(name).write_bytes(content)

    def close(self) -> None:
        for slot in self.slots:
            slot.close()
