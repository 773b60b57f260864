"""A savepoint, a stop or a rescale that hangs is given up in time: whoever asked is told, and the job goes on."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.savepoint import savepoint as savepoint_module
from headwater.checkpoint.savepoint.savepoint import open_savepoint
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError
from headwater.runtime.epoch.wakeup import Wakeup
from headwater.runtime.job.endings import JobCancelledError, StoppedWithSavepoint
from headwater.runtime.job.job_sources import JobSources
from headwater.runtime.job.requests import RescaleRequest, SavepointRequest
from headwater.runtime.slot import slot as slot_module
from tests.unit.runtime.in_process_engine import plan_of
from tests.unit.runtime.test_checkpoints import SpanningJob
from tests.unit.runtime.test_coordinator import Job, expected, summing
from tests.unit.runtime.test_stopping import ask_in_epoch

TIMEOUT_MS = 150


class Gate:
    """What goes through it waits until it is opened, and is counted."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.waiting = 0
        self.ended = 0

    def hold(self, function: Callable[..., Any], only: Callable[..., bool] = lambda *_: True) -> Callable[..., Any]:
        def held(*arguments: Any, **named: Any) -> Any:
            if not only(*arguments) or self.opened.is_set():
                return function(*arguments, **named)
            self.waiting += 1
            try:
                assert self.opened.wait(60)
                return function(*arguments, **named)
            finally:
                self.ended += 1

        return held


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.opened.set()
    deadline = time.monotonic() + 30
    while made.ended < made.waiting:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def job_that_is_asked(tmp_path: Path, request: SavepointRequest | RescaleRequest, **settings: Any) -> SpanningJob:
    """A job with a checkpoint in epochs 1 and 8 that is asked in epoch 3."""
    job = SpanningJob(tmp_path, {1, 8}, timeout_ms=TIMEOUT_MS, **settings)
    job.start()
    job.engine.slots.checkpoint_seconds = TIMEOUT_MS / 1000
    ask_in_epoch(job, 3, request)  # type: ignore[arg-type]
    return job


def error_of(request: SavepointRequest | RescaleRequest) -> str:
    future = request.path if isinstance(request, SavepointRequest) else request.done
    return str(future.exception(0))


def requests(tmp_path: Path) -> dict[str, SavepointRequest | RescaleRequest]:
    target = str(tmp_path / "savepoints" / "one")
    return {
        "savepoint": SavepointRequest(target),
        "stop": SavepointRequest(target, stop=True),
        "rescale": RescaleRequest(3, plan_of(summing, 3)),
    }


@pytest.mark.parametrize("what", ["savepoint", "stop", "rescale"])
def test_a_part_that_a_slot_never_writes(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    request = requests(tmp_path)[what]
    job = job_that_is_asked(tmp_path, request, tolerable_failures=100)
    write = gate.hold(slot_module.write_snapshot, lambda path, header, _: header["epoch"] > 1 and not done())
    monkeypatch.setattr(slot_module, "write_snapshot", write)

    def done() -> bool:
        return (request.path if isinstance(request, SavepointRequest) else request.done).done()

    job.run()
    assert gate.waiting
    assert "execution.checkpointing.timeout" in error_of(request) and "The job goes on" in error_of(request)
    assert job.results() == expected()


@pytest.mark.parametrize("what", ["savepoint", "stop", "rescale"])
def test_a_manifest_that_is_never_written(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """What hangs may still become durable, so it is waited for beside the epochs: that much goes on."""
    request = requests(tmp_path)[what]
    job = job_that_is_asked(tmp_path, request)
    monkeypatch.setattr("headwater.runtime.job.checkpoints.GRACE_SECONDS", 0.001)
    write = gate.hold(ManifestStore.write, lambda _, manifest: manifest.epoch > 1)
    monkeypatch.setattr(ManifestStore, "write", write)
    future: Any = request.path if isinstance(request, SavepointRequest) else request.done
    future.add_done_callback(lambda _: gate.opened.set())
    job.run()
    assert gate.waiting
    assert "execution.checkpointing.timeout" in error_of(request) and "The job goes on" in error_of(request)
    assert job.results() == expected()


@pytest.mark.parametrize("what", ["savepoint", "stop"])
def test_a_copy_that_hangs(tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Checkpoints are completed meanwhile; and when it wakes up, it leaves nothing."""
    request = requests(tmp_path)[what]
    job = job_that_is_asked(tmp_path, request)
    monkeypatch.setattr(savepoint_module, "_copy", gate.hold(savepoint_module._copy))
    slow = threading.Event()
    job.engine.after_stages = lambda header: header.attempt.epoch < 8 or slow.wait(TIMEOUT_MS / 1000) or None  # type: ignore[assignment, return-value]
    job.run()
    job.coordinator.close()
    assert gate.waiting == 1
    assert "execution.checkpointing.timeout" in error_of(request) and "The job goes on" in error_of(request)
    assert job.results() == expected()
    assert [stats.status for stats in job.coordinator.checkpoints.history] == ["completed"] * 4
    gate.opened.set()
    deadline = time.monotonic() + 30
    while os.listdir(tmp_path / "savepoints"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_files_of_a_slow_copy_are_kept_until_it_is_done(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = SavepointRequest(str(tmp_path / "savepoints" / "one"))
    job = SpanningJob(tmp_path, set(range(20)))
    job.start()
    ask_in_epoch(job, 3, request)
    monkeypatch.setattr("headwater.runtime.slot.full_snapshot.MAX_DELTAS", 1)
    monkeypatch.setattr(savepoint_module, "_copy", gate.hold(savepoint_module._copy))
    job.run()
    assert gate.waiting == 1 and not request.path.done()
    gate.opened.set()
    job.coordinator.close()
    opened = open_savepoint(request.path.result(0))
    assert opened.manifest.epoch < job.coordinator.epoch - 2, "no later checkpoint came meanwhile"


def test_a_stop_whose_copy_comes_in_time_stops(tmp_path: Path) -> None:
    request = SavepointRequest(str(tmp_path / "savepoints" / "one"), stop=True)
    job = job_that_is_asked(tmp_path, request)
    with pytest.raises(StoppedWithSavepoint):
        job.run()
    assert open_savepoint(request.path.result(0)).is_savepoint


def test_a_drained_job_whose_copy_hangs_ends_and_says_where_its_state_is(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = SavepointRequest(str(tmp_path / "savepoints" / "one"), stop=True, drain=True)
    job = job_that_is_asked(tmp_path, request)
    monkeypatch.setattr(savepoint_module, "_copy", gate.hold(savepoint_module._copy))
    with pytest.raises(CheckpointError, match=r"was drained and has ended; .* the same state"):
        job.run()
    assert "was drained and has ended" in error_of(request)


def test_a_savepoint_of_a_job_without_input_does_not_wait_for_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = SavepointRequest(str(tmp_path / "savepoints" / "one"))
    job = Job(tmp_path)
    job.start()
    monkeypatch.setattr(JobSources, "exhausted", False)  # it reads on, and nothing comes
    waits: list[float] = []
    deadline = time.monotonic() + 30

    def nothing_comes(seconds: float, wakeup: Wakeup) -> bool:
        waits.append(seconds)
        if len(waits) == 3:
            job.coordinator.ask(request)
        elif request.path.done() or time.monotonic() > deadline:
            job.coordinator.cancel()
        return False

    monkeypatch.setattr(job.engine, "wait", nothing_comes)
    with pytest.raises(JobCancelledError):
        job.run()
    assert open_savepoint(request.path.result(0)).is_savepoint
