"""The list of retained checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.checkpoint.savepoint.history import retained_checkpoints
from headwater.checkpoint.savepoint.savepoint import open_savepoint
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError
from tests.unit.checkpoint.old_job import VALUE, OldJob


@pytest.fixture
def job(tmp_path: Path) -> OldJob:
    job = OldJob(tmp_path / "job", ["op"], 2)
    for _ in range(3):
        job.run_epoch(
            lambda job: [job.of_key("op", key).get_state(VALUE).update(job.epoch) for key in range(20)] and None
        )
    return job


def test_each_checkpoint_tells_its_size_and_can_be_opened(job: OldJob) -> None:
    found = retained_checkpoints(job.layout.root)
    assert [(each.epoch, each.created_ms, each.partitions, each.finished) for each in found] == [
        (0, 1000, 2, False),
        (1, 1001, 2, False),
        (2, 1002, 2, False),
    ]
    on_disk = {path.name: path.stat().st_size for path in job.layout.snapshots.iterdir()}
    for each in found:
        new = sum(size for name, size in on_disk.items() if f"-e{each.epoch:012d}-" in name)
        assert each.delta_bytes == new > 0
        assert open_savepoint(str(each.path)).manifest.epoch == each.epoch
    assert found[2].full_bytes == sum(on_disk.values()) == sum(each.delta_bytes for each in found)


def test_the_oldest_one_counts_only_its_own_files_as_new(job: OldJob) -> None:
    everything = retained_checkpoints(job.layout.root)
    ManifestStore(job.layout).collect_garbage(1)
    assert retained_checkpoints(job.layout.root) == everything[-1:]


def test_a_damaged_one_is_listed_with_what_is_wrong(job: OldJob) -> None:
    job.layout.manifest(1).write_bytes(b"HWMANIF")
    first, second, third = retained_checkpoints(job.layout.root)
    assert "damaged" in second.problem and second.full_bytes == 0
    assert not first.problem and not third.problem


def test_another_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="has no manifest; expected the checkpoint directory"):
        retained_checkpoints(tmp_path)
