"""A whole job (without Spark) whose checkpoints are in S3: it loses slots, dies, and goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.storage import fsspec as storage_fsspec
from headwater.checkpoint.storage.fsspec import FsspecStorage
from headwater.checkpoint.storage.retries import RetryPolicy
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason
from headwater.runtime.epoch.messages import EpochHeader
from tests.contract.s3_server import S3Server, s3_server
from tests.unit.runtime.test_coordinator import Job, expected


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


class PowerCutError(BaseException):
    """Not an error that anybody handles."""


@pytest.mark.parametrize("local_copies", [False, True])
def test_slots_and_driver_die_and_nothing_is_lost(s3: S3Server, tmp_path: Path, local_copies: bool) -> None:
    job = Job(tmp_path, checkpoints=False)
    job.layout = CheckpointLayout(s3.spec(copies_directory=str(tmp_path / "copies") if local_copies else None))
    storage = job.layout.storage
    assert isinstance(storage, FsspecStorage)
    died: list[str] = []

    def die(header: EpochHeader) -> None:
        if header.attempt.epoch == 4 and "slots" not in died:
            died.append("slots")
            job.engine.slots.by_place.clear()
            raise AttemptFailedError("all slots died", FailureReason.PROCESS_LOST)
        if header.attempt.epoch == 7 and "driver" not in died:
            died.append("driver")
            raise PowerCutError

    job.start()
    job.engine.before = die
    with pytest.raises(PowerCutError):
        job.run()
    job.start()
    job.run()
    assert died == ["slots", "driver"]
    assert job.results() == expected()
    assert job.coordinator.finished
    kept = {name for epoch in job.store.epochs() for name in job.store.load(epoch).snapshot_names()}
    # The child that writes a full snapshot may have ended after the last manifest.
    listed = {name for name in storage.list("snapshots") if name in kept or ".full" not in name}
    assert kept and kept == listed
    if storage.copies is not None:
        assert kept == {path.name for path in storage.copies.directory.iterdir()}


class Outage:
    """The store is away until one of those who ask again has waited for half a minute, by the clock of the pauses."""

    def __init__(self, s3: S3Server) -> None:
        self._s3 = s3
        self._waited = threading.local()
        self._lock = threading.Lock()
        self.away = self.over = False

    def begin(self) -> None:
        self._s3.stop()
        self.away = True

    def pause(self, seconds: float) -> None:
        self._waited.seconds = getattr(self._waited, "seconds", 0.0) + seconds
        with self._lock:
            if self.away and self._waited.seconds >= 30:
                self._s3.start_again()
                self.away, self.over = False, True


def test_a_store_that_is_down_for_half_a_minute_costs_no_checkpoint(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outage = Outage(s3)
    monkeypatch.setattr(storage_fsspec, "RetryPolicy", lambda: RetryPolicy(sleep=outage.pause))
    job = Job(tmp_path, checkpoints=False)
    job.layout = CheckpointLayout(s3.spec())

    def before(header: EpochHeader) -> None:
        if header.attempt.epoch == 4 and not (outage.away or outage.over):
            outage.begin()

    job.start()
    job.engine.before = before
    try:
        job.run()
    finally:
        if outage.away:
            s3.start_again()
    assert outage.over
    assert job.results() == expected()
    assert {stats.status for stats in job.coordinator.checkpoints.history} == {"completed"}
    assert job.coordinator.progress.restarts == 0
