"""A second job that starts from a checkpoint of one that runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.start.decision import Resume
from headwater.checkpoint.start.directory_lock import DirectoryLock
from headwater.common import Configuration
from headwater.common.errors import CheckpointError
from headwater.runtime.job.start import JobStart, prepare_start
from tests.unit.runtime.test_coordinator import Job


class RunningJob(Job):
    """One whose directory is in use. It has read half of its input."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.start()
        self.run()
        assert self.layout is not None
        self.lock = DirectoryLock(self.layout, "first")
        self.lock.acquire()

    @property
    def newest(self) -> Manifest:
        manifest = self.store.latest()
        assert manifest is not None
        return manifest

    def fork(self, directory: Path, name: str) -> JobStart:
        start = prepare_start(
            self.plan(),
            Configuration.from_dict(
                {"execution.checkpointing.dir": str(directory), "execution.state-recovery.path": name}
            ),
        )
        start.release()
        return start


@pytest.fixture
def job(tmp_path: Path) -> RunningJob:
    return RunningJob(tmp_path)


def test_it_does_not_need_the_checkpoint_any_more(job: RunningJob, tmp_path: Path) -> None:
    assert job.layout is not None
    start = job.fork(tmp_path / "second", f"{job.layout.root}@{job.newest.epoch}")
    assert start.savepoint is not None and isinstance(start.decision, Resume)
    assert start.savepoint.layout.root == tmp_path / "second" / "fork"
    assert start.decision.manifest.partitions == job.newest.partitions
    assert start.decision.dispose_savepoint, "the copy goes with the first checkpoint of its own"


def test_a_second_start_finds_the_copy_of_the_first(job: RunningJob, tmp_path: Path) -> None:
    assert job.layout is not None
    name = f"{job.layout.root}@{job.newest.epoch}"
    job.fork(tmp_path / "second", name)
    shutil.rmtree(job.layout.root / "manifests")
    again = job.fork(tmp_path / "second", name)
    assert again.savepoint is not None and again.savepoint.layout.root == tmp_path / "second" / "fork"
    assert isinstance(again.decision, Resume) and again.decision.dispose_savepoint
    with pytest.raises(CheckpointError) as wrong:
        job.fork(tmp_path / "third", name)
    assert "A copy of it" not in str(wrong.value), "there never was one"
    (tmp_path / "second" / "fork" / "SAVEPOINT").unlink()
    with pytest.raises(CheckpointError, match="A copy of it"):
        job.fork(tmp_path / "second", name)


def test_another_start_from_another_checkpoint_is_not_the_copy_of_the_first(job: RunningJob, tmp_path: Path) -> None:
    assert job.layout is not None
    older, newer = job.store.epochs()[-2:]
    job.fork(tmp_path / "second", f"{job.layout.root}@{older}")
    start = job.fork(tmp_path / "second", f"{job.layout.root}@{newer}")
    assert start.savepoint is not None and start.savepoint.manifest.epoch == newer


def test_a_checkpoint_of_a_job_that_does_not_run_is_not_copied(job: RunningJob, tmp_path: Path) -> None:
    assert job.layout is not None
    job.lock.release()
    start = job.fork(tmp_path / "second", f"{job.layout.root}@{job.newest.epoch}")
    assert start.savepoint is not None and start.savepoint.layout.root == job.layout.root
    assert not (tmp_path / "second" / "fork").exists()


def test_a_checkpoint_that_is_deleted_while_it_is_copied(job: RunningJob, tmp_path: Path) -> None:
    assert job.layout is not None
    for path in (job.layout.root / "snapshots").iterdir():
        path.unlink()
    with pytest.raises(CheckpointError, match="may have deleted it just now: name a newer one"):
        job.fork(tmp_path / "second", f"{job.layout.root}@{job.newest.epoch}")
    assert not (tmp_path / "second" / "fork").exists()


def test_a_copy_that_was_left_goes_when_the_job_has_a_checkpoint_of_its_own(job: RunningJob, tmp_path: Path) -> None:
    assert job.layout is not None
    start = job.fork(tmp_path / "second", f"{job.layout.root}@{job.newest.epoch}")
    assert start.layout is not None and start.store is not None
    shutil.copytree(job.layout.root / "snapshots", start.layout.root / "snapshots", dirs_exist_ok=True)
    start.store.write(job.newest)
    assert (tmp_path / "second" / "fork").exists()
    again = job.fork(tmp_path / "second", f"{job.layout.root}@{job.newest.epoch}")
    assert again.outlived == tmp_path / "second" / "fork", "it goes with the next checkpoint, when this one was of use"
    assert (tmp_path / "second" / "fork").exists()
