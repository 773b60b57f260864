"""A job that is asked to stop with a savepoint ends with one, or goes on."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.savepoint.savepoint import open_savepoint
from headwater.common import Configuration, JobStatus, WatermarkStrategy
from headwater.common.errors import CheckpointError, HeadwaterError
from headwater.datastream import StreamExecutionEnvironment
from headwater.runtime.epoch.messages import EpochHeader
from headwater.runtime.job import savepoint_copies
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.endings import StoppedWithSavepoint
from headwater.runtime.job.requests import SavepointRequest
from headwater.testing import CollectingSink, ScriptSource
from tests.unit.runtime.test_coordinator import Job, expected
from tests.waiting import wait_until


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


class Stopping:
    """A job in process that never ends by itself, and what its handle said when the future of a stop was done."""

    def __init__(self, tmp_path: Path) -> None:
        conf = {"headwater.master": "in-process", "execution.checkpointing.dir": str(tmp_path / "checkpoints")}
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(conf))
        numbers = env.from_source(ScriptSource([1, 2], bounded=False), WatermarkStrategy.no_watermarks(), "numbers")
        numbers.sink_to(CollectingSink(str(tmp_path / "out")))
        self.client = env.execute_async("stopping")
        wait_until(lambda: self.client.progress()["epoch"] >= 0, "the first epoch")
        self.ended_before: list[bool] = []
        self.stopped = self.client.stop_with_savepoint(False, str(tmp_path / "savepoints"))
        self.stopped.add_done_callback(
            lambda _: self.ended_before.append(self.client.get_job_execution_result().done())
        )


def test_whoever_stops_a_job_is_told_when_it_has_ended(tmp_path: Path) -> None:
    """A program may stop Spark then."""
    job = Stopping(tmp_path)
    assert open_savepoint(job.stopped.result(30)).manifest.epoch >= 0
    assert job.ended_before == [True]
    assert job.client.get_job_status().result() is JobStatus.FINISHED


def test_whoever_stops_a_job_that_then_fails_is_told_of_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(coordinator: Coordinator) -> None:
        if coordinator.epoch >= 0:
            raise RuntimeError("the disk is on fire")

    monkeypatch.setattr(Coordinator, "clean_up", fail)
    job = Stopping(tmp_path)
    with pytest.raises(HeadwaterError, match=r"the savepoint is in (\S+), but then the job failed: .* on fire") as told:
        job.stopped.result(30)
    assert open_savepoint(str(told.value).split()[4].rstrip(","))
    assert job.ended_before == [True]
