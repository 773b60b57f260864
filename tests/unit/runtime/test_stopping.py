"""A job that is asked to stop with a savepoint ends with one, or goes on."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.savepoint.savepoint import open_savepoint
from headwater.common.errors import CheckpointError
from headwater.runtime.epoch.messages import EpochHeader
from headwater.runtime.job import savepoint_copies
from headwater.runtime.job.endings import StoppedWithSavepoint
from headwater.runtime.job.requests import SavepointRequest
from tests.unit.runtime.test_coordinator import Job, expected


def ask_in_epoch(job: Job, epoch: int, request: SavepointRequest) -> None:
    asked: list[int] = []

    def ask(header: EpochHeader) -> None:
        if header.attempt.epoch == epoch and not asked:
            asked.append(epoch)
            job.coordinator.ask(request)

    job.engine.before = ask


def job_with(tmp_path: Path, request: SavepointRequest) -> Job:
    """A job that is asked in epoch 3."""
    job = Job(tmp_path)
    job.start()
    ask_in_epoch(job, 3, request)
    return job


def full_disk(*_: Any, **__: Any) -> Any:
    raise CheckpointError("savepoint cannot be written: no space left")


@pytest.mark.parametrize("drain", [False, True])
def test_a_place_that_cannot_be_written_to_does_not_end_the_job(tmp_path: Path, drain: bool) -> None:
    (tmp_path / "file").touch()
    request = SavepointRequest(str(tmp_path / "file" / "savepoint"), stop=True, drain=drain)
    job = job_with(tmp_path, request)
    job.run()
    with pytest.raises(CheckpointError, match=r"cannot be written: .*/file is not a directory.*The job goes on"):
        request.path.result(0)
    assert job.results() == expected()


def test_a_copy_that_fails_does_not_end_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(savepoint_copies, "write_savepoint", full_disk)
    request = SavepointRequest(str(tmp_path / "savepoint"), stop=True)
    job = job_with(tmp_path, request)
    job.run()
    with pytest.raises(CheckpointError, match=r"no space left\. The job goes on"):
        request.path.result(0)
    assert job.results() == expected()


def test_a_drained_job_ends_and_says_where_its_state_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(savepoint_copies, "write_savepoint", full_disk)
    request = SavepointRequest(str(tmp_path / "savepoint"), stop=True, drain=True)
    job = job_with(tmp_path, request)
    assert job.layout is not None
    with pytest.raises(CheckpointError, match=r"no space left\. The job was drained and has ended; .* the same state"):
        job.run()
    with pytest.raises(CheckpointError, match=rf"{job.layout.root}@4 has the same state"):
        request.path.result(0)
    assert open_savepoint(f"{job.layout.root}@4").manifest.finished


def test_with_a_place_it_ends(tmp_path: Path) -> None:
    request = SavepointRequest(str(tmp_path / "new" / "savepoint"), stop=True)
    job = Job(tmp_path)
    job.start()
    ask_in_epoch(job, 3, request)
    with contextlib.suppress(StoppedWithSavepoint):
        job.run()
    assert open_savepoint(request.path.result(0)).is_savepoint
    assert os.listdir(tmp_path / "new") == ["savepoint"]
    assert not job.coordinator.finished
