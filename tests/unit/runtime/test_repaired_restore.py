"""A slot that finds a damaged file gets to the same state by others, and the job is rid of the file soon after."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.checkpoint.restore.rescale import PartitionRestore, RestorePart
from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.common.errors import CheckpointError
from headwater.runtime.epoch.messages import BeginEpoch, EpochHeader
from tests.unit.runtime.in_process_engine import plan_of
from tests.unit.runtime.keeping_job import PARTITION, STAGE, KeepingJob
from tests.unit.runtime.test_coordinator import Job, expected
from tests.unit.runtime.test_native_snapshots import build, finish_upload, rocksdb_plan


@pytest.fixture(params=["heap", "rocksdb"])
def job(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeepingJob]:
    """Its newest checkpoint is the first that begins with a full (or native) snapshot in place of older ones."""
    monkeypatch.setattr("headwater.runtime.slot.full_snapshot.MAX_DELTAS", 4)
    monkeypatch.setattr("headwater.state.rocksdb.value.WRITTEN_AT_ONCE", 2)
    plan = plan_of(build) if request.param == "heap" else rocksdb_plan(tmp_path / "local")
    made = KeepingJob(plan, tmp_path / "checkpoints", retained=3)
    slot = made.new_slot()
    made.run(slot, 5)
    base = made.snapshots[0]
    while made.snapshots[0] == base or base.kind == "delta":
        base = made.snapshots[0]
        made.run(slot, 1)
    assert made.snapshots[0].kind in ("full", "native") and len(made.store.epochs()) == 3
    yield made
    made.close()


def test_a_damaged_full_snapshot_is_replaced_by_what_was_before_it(
    job: KeepingJob, caplog: pytest.LogCaptureFixture
) -> None:
    newest = job.durable_epoch
    full = job.snapshots[0]
    job.damage(full.name)
    slot, contents = job.restore(newest)
    assert contents == job.oracle[newest]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warning.startswith("repaired: stage 1 partition 0") and full.name in warning
    job.run(slot, 1)
    assert not job.names(job.durable_epoch) & {full.name}, "the next checkpoint must not depend on the damaged file"
    job.run(slot, 6)  # the files of the repair are deleted meanwhile
    assert job.restore(job.durable_epoch)[1] == job.oracle[job.durable_epoch]


def test_a_damaged_delta_is_replaced_by_a_full_snapshot_of_a_later_checkpoint(job: KeepingJob) -> None:
    newest = job.durable_epoch
    full = job.snapshots[0]
    older = next(epoch for epoch in job.store.epochs() if full.epoch <= epoch < newest)
    before = [ref for ref in job.store.load(older).partitions[0].snapshots if ref.epoch <= full.epoch]
    for ref in before[1:]:
        job.path(ref.name).unlink()
    assert job.restore(older)[1] == job.oracle[older]


@pytest.mark.parametrize("job", ["rocksdb"], indirect=True)
def test_a_damaged_file_of_a_database_is_replaced_as_long_as_no_older_snapshot_shares_it(job: KeepingJob) -> None:
    newest = job.durable_epoch
    older = {name for epoch in job.store.epochs()[:-1] for name in job.names(epoch)}
    own = [file.name for file in job.snapshots[0].files if file.name not in older]
    shared = [file.name for file in job.snapshots[0].files if file.name in older]
    job.damage(own[0])
    slot, contents = job.restore(newest)
    assert contents == job.oracle[newest]
    job.run(slot, 1)
    assert not job.names(job.durable_epoch) & {own[0], *shared}, "all files are sent again"
    assert job.restore(job.durable_epoch)[1] == job.oracle[job.durable_epoch]


def test_several_damaged_files_are_found_one_after_another(job: KeepingJob) -> None:
    newest = job.durable_epoch
    older = job.store.epochs()[-2]
    job.damage(job.snapshots[0].name)
    job.damage(job.store.load(older).partitions[0].snapshots[0].name)
    with pytest.raises(CheckpointError, match="It was to stand in for another file"):
        job.restore(newest)


def test_a_checkpoint_that_cannot_be_repaired_is_refused_and_the_newest_whole_one_is_named(job: KeepingJob) -> None:
    *_, older, newest = job.store.epochs()
    (only_there,) = (
        job.names(newest)
        - {name for epoch in job.store.epochs()[:-1] for name in job.names(epoch)}
        - {name for name in job.names(newest) if name == job.snapshots[0].name or ".sst" in name}
    )
    job.path(only_there).unlink()
    with pytest.raises(CheckpointError, match=f"{only_there} of epoch {newest} is missing.* that of epoch {older}: "):
        job.restore(newest)
    assert job.restore(older)[1] == job.oracle[older], "what is said to be whole is"


def test_nothing_is_whole(job: KeepingJob) -> None:
    for epoch in job.store.epochs():
        for name in job.names(epoch):
            if job.path(name).exists():
                job.path(name).unlink()
    with pytest.raises(CheckpointError, match="no retained checkpoint has all its files whole"):
        job.restore(job.durable_epoch)


def test_a_partition_of_a_job_of_another_shape_is_repaired_too(
    job: KeepingJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who begins with parts of another job's checkpoint reads that job's manifests."""
    newest = job.durable_epoch
    job.damage(job.snapshots[0].name)
    assert job.layout is not None
    groups = {"keep": range(job.plan.max_parallelism)}
    part = RestorePart(str(job.layout.root), STAGE, PARTITION, tuple(job.snapshots), keyed=groups)
    asked: list[list[SnapshotRef]] = []

    def with_restore(begin: BeginEpoch) -> BeginEpoch:
        asked.append(list(begin.snapshots))
        return BeginEpoch(
            begin.attempt, begin.base, begin.now_ms, begin.watermarks, [], True, begin.cut, begin.wait,
            restore=PartitionRestore(STAGE, PARTITION, (part,)),
        )  # fmt: skip

    original = type(job.slots[0]).begin
    monkeypatch.setattr(
        "headwater.runtime.slot.slot.Slot.begin", lambda slot, begin, emit: original(slot, with_restore(begin), emit)
    )
    assert job.restore(newest)[1] == job.oracle[newest] and asked


# --- with the coordinator


class Damager:
    """Waits for a checkpoint whose chain begins with a new full snapshot, and damages that."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.damaged: str | None = None

    def strike(self) -> bool:
        for slot in self.job.engine.slots.by_place.values():
            finish_upload(slot)
        self.job.coordinator.checkpoints.wait_until_noted()  # what is garbage has gone
        chains = [self.job.store.load(epoch).partition(1, 0) for epoch in self.job.store.epochs()]
        bases = [chain.snapshots[0] for chain in chains if chain is not None and chain.snapshots]
        if self.damaged is None and len(bases) > 1 and bases[-1].kind == "full" and bases[-1] != bases[-2]:
            self.damaged = bases[-1].name
            assert self.job.layout is not None
            os.truncate(str(self.job.layout.snapshot(self.damaged)), 20)
            return True
        return False

    def check_it_is_over(self) -> None:
        assert self.damaged is not None
        latest = self.job.store.latest()
        assert latest is not None and self.damaged not in latest.snapshot_names()


@pytest.fixture
def frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.runtime.slot.full_snapshot.MAX_DELTAS", 3)
    monkeypatch.setattr("headwater.state.rocksdb.value.WRITTEN_AT_ONCE", 2)


@pytest.mark.usefixtures("frequent")
def test_a_slot_that_is_lost_while_the_job_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    job = Job(tmp_path)
    job.start()
    damager = Damager(job)

    def strike(header: EpochHeader) -> None:
        if damager.strike():
            job.engine.kill_slot(1, 0)

    job.engine.before = strike
    job.run()
    damager.check_it_is_over()
    assert job.results() == expected() and job.coordinator.progress.restarts == 0
    assert sum("repaired: " in record.getMessage() for record in caplog.records) == 1


@pytest.mark.usefixtures("frequent")
def test_a_job_that_is_started_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Killed(BaseException):
        pass

    job = Job(tmp_path)
    job.start()
    damager = Damager(job)

    def strike(header: EpochHeader) -> None:
        if damager.strike():
            raise Killed

    job.engine.before = strike
    with pytest.raises(Killed):
        job.run()
    job.coordinator.checkpoints.close()
    job.start()
    job.run()
    damager.check_it_is_over()
    assert job.results() == expected()
    assert sum("repaired: " in record.getMessage() for record in caplog.records) == 1
