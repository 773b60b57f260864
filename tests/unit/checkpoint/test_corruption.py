"""Two thousand damaged files: each is an error, or what is read is what was written. Never another value.

Then some hundred restores of retained checkpoints: each is an error, or has the state that the checkpoint had.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.checkpoint.finished_splits import FinishedSplits
from headwater.checkpoint.manifest import Manifest, PartitionRecord, SourceRecord, SplitRecord
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.snapshot.file import read_sections, write_snapshot
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError
from headwater.state.snapshot.section import Section
from tests.unit.runtime.in_process_engine import plan_of
from tests.unit.runtime.keeping_job import KeepingJob
from tests.unit.runtime.test_native_snapshots import build

DAMAGES = 2_000
"""Over the four kinds of files."""

DAMAGED_CHECKPOINTS = 300


def a_snapshot(layout: CheckpointLayout) -> tuple[Path, Callable[[], object]]:
    sections = [Section(f"op{n % 3}", "keyed", "count", n, os.urandom(20 + n)) for n in range(30)]
    sections.append(Section("op0", "operator", "offsets", -1, b"compressible " * 1000))
    path = layout.new_snapshot(1, 0, 7, "a", "full")
    ref = write_snapshot(path, {"epoch": 7, "kind": "full", "key_groups": (0, 128)}, sections)
    assert isinstance(path, Path)
    return path, lambda: list(read_sections(path, ref))


def a_manifest(layout: CheckpointLayout) -> tuple[Path, Callable[[], object]]:
    store = ManifestStore(layout)
    store.take_over("job")
    splits = {f"split-{n}": SplitRecord(os.urandom(10), os.urandom(5)) for n in range(10)}
    path = store.write(
        Manifest(
            "j", "job", 7, 1, 5, 6, "f", 128,
            partitions=[PartitionRecord(1, n, [], {"head:op": n}) for n in range(4)],
            sources={"source": SourceRecord(splits)},
            committables={"sink": [b"file-1", b"file-2"]},
        )
    )  # fmt: skip
    assert isinstance(path, Path)
    return path, lambda: ManifestStore(layout).latest()


def a_finished_splits_file(layout: CheckpointLayout) -> tuple[Path, Callable[[], object]]:
    record = FinishedSplits(layout, "files").add([f"/data/{n}.json" for n in range(1000)], 7, "a")
    path = layout.split_segment(record.segments[0].name)
    assert isinstance(path, Path)
    return path, lambda: FinishedSplits.restore(layout, "files", record).ids()


def a_base(layout: CheckpointLayout) -> tuple[Path, Callable[[], object]]:
    a_manifest(layout)
    ManifestStore(layout).take_over("job")
    path = layout.storage.locate("claims/000000000002.base")
    assert isinstance(path, Path)
    return path, lambda: ManifestStore(layout).latest()


@pytest.mark.parametrize("make", [a_snapshot, a_manifest, a_finished_splits_file, a_base])
def test_no_wrong_value_is_ever_read(
    make: Callable[[CheckpointLayout], tuple[Path, Callable[[], object]]], tmp_path: Path
) -> None:
    layout = CheckpointLayout(tmp_path)
    layout.create()
    path, read = make(layout)
    good, expected = path.read_bytes(), read()
    chance = random.Random(make.__name__)
    found = 0
    for number in range(DAMAGES // 4):
        damaged = damage(good, chance)
        path.write_bytes(damaged)
        try:
            value = read()
        except CheckpointError as error:
            assert path.name in str(error)
            found += 1
        else:
            assert value == expected, f"damage {number} gave another value"
    assert found > DAMAGES // 4 * 0.95
    path.write_bytes(good)
    assert read() == expected


def damage(good: bytes, chance: random.Random) -> bytes:
    """Cut at a random place, some bits flipped, a range lost or filled with zeros, or something appended."""
    bad = bytearray(good)
    start = chance.randrange(len(bad))
    kind = chance.randrange(6)
    if kind <= 1:
        del bad[start:]
    elif kind <= 3:
        for _ in range(chance.choice([1, 1, 2, 10])):
            bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
    elif kind == 4:
        length = len(bad[start : start + 512])
        bad[start : start + 512] = bytes(length) if chance.random() < 0.5 else b""
    else:
        bad += chance.randbytes(chance.randint(1, 20))
    return bytes(bad)


def test_a_damaged_checkpoint_is_repaired_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One or two of its files are missing or damaged; files of other retained checkpoints may have the same state."""
    monkeypatch.setattr("headwater.runtime.slot.full_snapshot.MAX_DELTAS", 3)
    monkeypatch.setattr("headwater.state.rocksdb.value.WRITTEN_AT_ONCE", 2)
    job = KeepingJob(plan_of(build), tmp_path / "checkpoints", retained=4)
    slot = job.new_slot()
    while not has_two_bases(job):
        job.run(slot, 1)
    snapshots, good = job.path("x").parent, tmp_path / "good"
    shutil.copytree(snapshots, good)
    chance = random.Random("repair")
    outcomes: Counter[str] = Counter()
    for number in range(DAMAGED_CHECKPOINTS):
        epoch = chance.choice(job.store.epochs())
        names = sorted(job.names(epoch))
        hit = chance.sample(names, min(len(names), chance.choice([1, 1, 2])))
        for name in hit:
            if chance.random() < 0.1:
                job.path(name).unlink()
            else:
                job.path(name).write_bytes(damage(job.path(name).read_bytes(), chance))
        try:
            restored, contents = job.restore(epoch)
        except CheckpointError as error:
            assert any(name in str(error) for name in hit)
            outcomes["refused"] += 1
        else:
            assert contents == job.oracle[epoch], f"damage {number} of epoch {epoch}, {hit}, gave another state"
            outcomes["repaired" if restored._rewrites else "not noticed"] += 1
        for name in hit:
            shutil.copyfile(good / name, snapshots / name)
    assert outcomes["repaired"] > DAMAGED_CHECKPOINTS // 5, outcomes
    assert outcomes["refused"] > DAMAGED_CHECKPOINTS // 5, outcomes
    assert outcomes["not noticed"] < DAMAGED_CHECKPOINTS // 20, outcomes
    job.close()


def has_two_bases(job: KeepingJob) -> bool:
    """Two of the four retained checkpoints are from before a full snapshot took the place of their deltas."""
    bases = [job.store.load(epoch).partitions[0].snapshots[0] for epoch in job.store.epochs()]
    return len(bases) == 4 and bases[0] == bases[1] != bases[2] == bases[3] and bases[0].kind == "full"
