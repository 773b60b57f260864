"""Checkpoints further apart than epochs, in flight beside them, failing, and gone back to."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.manifest import Manifest, PartitionRecord
from headwater.checkpoint.paths import SnapshotKind
from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError, JobFailedError
from headwater.runtime.epoch.checkpoint_schedule import CheckpointSchedule, CheckpointSettings
from headwater.runtime.epoch.engine_choice import EngineChoice
from headwater.runtime.epoch.messages import EpochHeader, SnapshotPart
from headwater.runtime.epoch.restart_policy import FixedDelay
from headwater.runtime.epoch.sizing import EpochSizer
from headwater.runtime.job import checkpoints as checkpoints_module
from headwater.runtime.job.committers import SinkCommitters
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.endings import RescaleAsked
from headwater.runtime.job.requests import RescaleRequest
from headwater.runtime.job.serving import serve_requests
from headwater.runtime.local import slot as local_slot
from headwater.runtime.slot import slot as slot_module
from headwater.runtime.slot import upload as upload_module
from tests.unit.runtime.in_process_engine import InProcessEngine, plan_of
from tests.unit.runtime.test_coordinator import EPOCH_RECORDS, Job, expected, summing


class SpanningJob(Job):
    """A job with a checkpoint only where `cuts` says so, and at its end."""

    def __init__(self, directory: Path, cuts: set[int], **settings: Any) -> None:
        super().__init__(directory)
        self.cuts = cuts
        self.settings = CheckpointSettings(interval_ms=10**9, **settings)

    def start(self, *_: Any, **__: Any) -> None:
        plan = self.plan()
        self.engine = InProcessEngine(plan, self.layout)
        self.coordinator = Coordinator(
            plan, "job", self.engine, self.store, FixedDelay(attempts=3, delay_ms=0),
            EpochSizer(10_000, EPOCH_RECORDS, EPOCH_RECORDS), retained=2, settings=self.settings,
        )  # fmt: skip
        schedule = self.coordinator.checkpoints.schedule
        schedule.due = lambda now_ms: self.coordinator.epoch + 1 in self.cuts  # type: ignore[method-assign]
        latest = self.store.latest()
        if latest is not None:
            self.coordinator.resume(latest, latest.incarnation + 1)


def kill_in(job: Job, epoch: int, number: int = 0) -> list[int]:
    """Let partition 0 lose its slot at the beginning of that attempt."""
    fired: list[int] = []

    def kill(header: EpochHeader) -> None:
        if (header.attempt.epoch, header.attempt.number) == (epoch, number) and not fired:
            fired.append(epoch)
            job.engine.kill_slot(1, 0)

    job.engine.before = kill
    return fired


def test_only_cuts_are_persisted_and_visible(tmp_path: Path) -> None:
    job = SpanningJob(tmp_path, {3, 6})
    job.start()
    visible = []
    job.engine.after_stages = lambda header: visible.append((header.attempt.epoch, len(job.sink.results())))
    job.run()
    assert job.results() == expected()
    counts = dict(visible)
    assert counts[3] == 0 and counts[4] == counts[6] == 4 * EPOCH_RECORDS and counts[7] == 7 * EPOCH_RECORDS


@pytest.mark.parametrize("epoch", range(1, 10))
def test_a_lost_slot_takes_the_job_back_to_its_last_checkpoint(tmp_path: Path, epoch: int) -> None:
    job = SpanningJob(tmp_path, {3, 6})
    job.start()
    fired = kill_in(job, epoch)
    job.run()
    assert fired and job.results() == expected()
    progress = job.coordinator.progress
    assert progress.rewinds == (0 if epoch in (4, 7) else 1), "only state that no checkpoint has is gone"
    assert progress.counters["records_in"] == 100


@pytest.mark.parametrize("stop_after", range(10))
def test_a_killed_driver_resumes_from_the_last_checkpoint(tmp_path: Path, stop_after: int) -> None:
    job = SpanningJob(tmp_path, {2, 5, 8})
    job.start()

    class Killed(BaseException):
        pass

    def die(header: EpochHeader) -> None:
        if header.attempt.epoch == stop_after:
            raise Killed

    job.engine.after_stages = die
    with pytest.raises(Killed):
        job.run()
    job.coordinator.checkpoints.close()
    job.start()
    job.run()
    assert job.results() == expected()


class SlowStore:
    """Holds manifests back until told, as a store far away would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate = threading.Event()
        self.waiting = threading.Event()
        write = ManifestStore.write

        def slow(store: ManifestStore, manifest: Any) -> Any:
            self.waiting.set()
            assert self.gate.wait(10)
            return write(store, manifest)

        monkeypatch.setattr(ManifestStore, "write", slow)
        monkeypatch.setattr(checkpoints_module, "GRACE_SECONDS", 0.001)


@pytest.mark.parametrize("lose_slot", [False, True])
def test_epochs_go_on_while_a_manifest_is_on_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lose_slot: bool
) -> None:
    store = SlowStore(monkeypatch)
    job = SpanningJob(tmp_path, {2, 3, 4, 5, 6})
    job.start()
    in_flight: list[tuple[int, bool]] = []

    def look(header: EpochHeader) -> None:
        in_flight.append((header.attempt.epoch, header.base.in_flight is not None))
        if header.attempt.epoch == 5 and header.attempt.number == 0:
            if lose_slot and len(in_flight) < 8:
                job.engine.kill_slot(1, 0)
            store.gate.set()

    job.engine.before = look
    job.run()
    assert job.results() == expected()
    assert {(3, True), (4, True), (5, True)} <= set(in_flight), "epochs waited for the store"
    # The manifest of epoch 2 was being written when the slot was lost: the job must not go behind it.
    assert job.coordinator.progress.rewinds == int(lose_slot)
    assert [stats.status for stats in job.coordinator.checkpoints.history].count("completed") >= 2


def hold_snapshots_back(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Snapshots are written when the event is set that is returned, and nobody waits for them."""
    gate = threading.Event()
    write = slot_module.write_snapshot

    def slow(*args: Any, **kwargs: Any) -> Any:
        assert gate.wait(10)
        return write(*args, **kwargs)

    monkeypatch.setattr(slot_module, "write_snapshot", slow)
    monkeypatch.setattr(slot_module, "GRACE_SECONDS", 0.001)
    return gate


def test_a_part_on_its_way_does_not_stop_the_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = hold_snapshots_back(monkeypatch)
    job = SpanningJob(tmp_path, {2, 3, 4, 5, 6})
    job.start()
    seen: list[int] = []

    def look(header: EpochHeader) -> None:
        if header.base.in_flight is not None:
            seen.append(header.attempt.epoch)
        if header.attempt.epoch == 6:
            gate.set()

    job.engine.before = look
    job.run()
    assert job.results() == expected() and {3, 4, 5, 6} <= set(seen)
    assert upload_module.GRACE_SECONDS > 0


@pytest.mark.parametrize("broken", ["manifest", "part"])
def test_the_next_checkpoint_has_what_a_failed_one_would_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    failures = _break(monkeypatch, broken, times=2)
    job = SpanningJob(tmp_path, {2, 4, 6}, tolerable_failures=2)
    job.start()
    fired = kill_in(job, 8)
    job.run()
    assert len(failures) == 2 and fired
    assert job.results() == expected()
    statuses = [stats.status for stats in job.coordinator.checkpoints.history]
    assert statuses.count("failed") == 2 and statuses[-1] == "completed"


def test_too_many_failed_checkpoints_are_a_failure_of_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = _break(monkeypatch, "manifest", times=100)
    job = SpanningJob(tmp_path, set(range(10)), tolerable_failures=1)
    job.start()
    with pytest.raises(JobFailedError, match=r"restart policy allows no more.*no space left"):
        job.run()
    assert job.sink.results() == []
    assert len(failures) == 1 + 3 + 1, "epochs in between are no success as long as no checkpoint is complete"


def _break(monkeypatch: pytest.MonkeyPatch, what: str, times: int) -> list[int]:
    failures: list[int] = []
    owner: Any = ManifestStore if what == "manifest" else slot_module
    name = "write" if what == "manifest" else "write_snapshot"
    write = getattr(owner, name)

    def fail(*args: Any, **kwargs: Any) -> Any:
        if len(failures) < times:
            failures.append(1)
            raise CheckpointError("no space left")
        return write(*args, **kwargs)

    monkeypatch.setattr(owner, name, fail)
    return failures


def test_statistics_of_a_checkpoint(tmp_path: Path) -> None:
    job = SpanningJob(tmp_path, {3})
    job.start()
    job.run()
    first = job.coordinator.checkpoints.history[0].as_dict()
    assert first["epoch"] == 3 and first["status"] == "completed"
    assert first["delta_bytes"] == sum(part["delta_bytes"] for part in first["parts"]) > 0
    assert first["full_bytes"] == first["delta_bytes"], "nothing was there before"
    last = job.coordinator.checkpoints.history[-1].as_dict()
    assert last["full_bytes"] == sum(part["full_bytes"] for part in last["parts"]) > last["delta_bytes"]
    assert {(part["stage"], part["partition"]) for part in first["parts"]} == {(1, 0), (1, 1)}
    assert first["duration_ms"] > 0 and first["sync_ms"] > 0 and first["async_ms"] > 0


# --- the schedule


def test_when_a_checkpoint_is_due() -> None:
    schedule = CheckpointSchedule(CheckpointSettings(interval_ms=100, min_pause_ms=50, timeout_ms=1_000))
    assert schedule.due(0)
    schedule.cut(0)
    assert not schedule.due(500), "one is in flight"
    assert not schedule.timed_out(1_000) and schedule.timed_out(1_001)
    schedule.completed(520)
    assert not schedule.due(560), "the pause is not over"
    assert schedule.due(570)


def test_failures_are_counted_in_a_row() -> None:
    schedule = CheckpointSchedule(CheckpointSettings(tolerable_failures=1))
    schedule.cut(0)
    assert schedule.failed(1)
    schedule.cut(2)
    schedule.completed(3)
    schedule.cut(4)
    assert schedule.failed(5)
    schedule.cut(6)
    assert not schedule.failed(7)


def test_a_full_snapshot_of_a_checkpoint_that_failed_is_not_used() -> None:
    """Deltas go on from the checkpoint before it, and say nothing about keys that came and went in between."""
    schedule = CheckpointSchedule(CheckpointSettings(tolerable_failures=5))
    committers = SinkCommitters(plan_of(lambda env: env.from_collection([1])))
    checkpoints = checkpoints_module.Checkpoints(None, committers, schedule, 1)
    place = (1, 0)

    def ref(epoch: int, kind: SnapshotKind) -> SnapshotRef:
        return SnapshotRef(f"{kind}-{epoch}", 1, 0, epoch, kind, (0, 1))

    def end_of_epoch(epoch: int, error: str | None = None) -> None:
        partitions = [PartitionRecord(*place)]
        draft = Manifest("j", "job", epoch, 1, 0, 0, "p", 1, partitions=partitions)
        checkpoints.cut(checkpoints_module.Cut(f"t{epoch}", draft, {place}, 0, 0.0))
        checkpoints.in_flight.add_part(place, SnapshotPart(f"t{epoch}", ref(epoch, "delta"), error), 0.0)

    end_of_epoch(1)
    checkpoints.advance(wait=True)
    end_of_epoch(2, error="no space left")
    checkpoints.chains.add_full(place, ref(2, "full"))
    checkpoints.advance(wait=True)
    end_of_epoch(3)
    checkpoints.advance(wait=True)
    assert [each.name for each in checkpoints.chains.durable[place]] == ["delta-1", "delta-3"]
    checkpoints.chains.add_full(place, ref(3, "full"))
    end_of_epoch(4)
    checkpoints.advance(wait=True)
    assert [each.name for each in checkpoints.chains.durable[place]] == ["full-3", "delta-4"]


def test_a_full_snapshot_of_a_checkpoint_that_was_abandoned_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slot is lost while a checkpoint waits for its part, and another one has handed in a full snapshot of it."""
    gate = threading.Event()
    write, fulls, fired = slot_module.write_snapshot, list[str](), list[int]()

    def slow_in_partition_0(path: Any, header: Any, sections: Any) -> Any:
        assert (header["partition"], header["epoch"], header["kind"]) != (0, 3, "delta") or gate.wait(10)
        return write(path, header, sections)

    class FullSnapshot:
        def __init__(self, name: str, ref: SnapshotRef) -> None:
            fulls.append(name)
            self.names, self.ref = (name,), ref

        def done(self) -> bool:
            return True

        def result(self) -> SnapshotRef:
            return self.ref

    monkeypatch.setattr(slot_module, "write_snapshot", slow_in_partition_0)
    monkeypatch.setattr(local_slot, "WrittenFull", FullSnapshot)
    monkeypatch.setattr(checkpoints_module, "GRACE_SECONDS", 60)
    job = SpanningJob(tmp_path, {1, 3})
    job.start()

    class Killed(BaseException):
        pass

    def before(header: EpochHeader) -> None:
        due = header.attempt.epoch == 4 and header.base.in_flight is not None and not fulls
        monkeypatch.setattr(slot_module, "full_snapshot_is_due", lambda chain: due)
        held_back = header.attempt.epoch == 3 and not fired
        monkeypatch.setattr(slot_module, "GRACE_SECONDS", 0.001 if held_back else 60)
        if header.attempt.epoch == 5 and not fired:
            fired.append(5)
            gate.set()
            job.engine.kill_slot(1, 0)
            # Epochs have other lengths now: what was epoch 3 is not what comes to be epoch 3.
            job.coordinator._choice = EngineChoice(EpochSizer(10_000, EPOCH_RECORDS // 2, EPOCH_RECORDS // 2))
        elif header.attempt.epoch == 5:
            raise Killed

    job.engine.before = before
    with pytest.raises(Killed):
        job.run()
    assert len(fulls) == 2 and fired and job.coordinator.progress.rewinds == 1
    job.coordinator.checkpoints.close()
    monkeypatch.setattr(slot_module, "full_snapshot_is_due", lambda chain: False)
    latest = job.store.latest()
    assert latest is not None and latest.epoch == 3
    job.start()
    job.run()
    assert job.results() == expected()


def test_a_full_snapshot_from_before_a_chain_that_began_anew_is_not_used() -> None:
    """A slot that repaired its restore writes all that it holds. The slot before it had handed out a full snapshot."""
    schedule = CheckpointSchedule(CheckpointSettings())
    committers = SinkCommitters(plan_of(lambda env: env.from_collection([1])))
    checkpoints = checkpoints_module.Checkpoints(None, committers, schedule, 1)
    place = (1, 0)

    def checkpoint(epoch: int, kind: SnapshotKind) -> None:
        draft = Manifest("j", "job", epoch, 1, 0, 0, "p", 1, partitions=[PartitionRecord(*place)])
        checkpoints.cut(checkpoints_module.Cut(f"t{epoch}", draft, {place}, 0, 0.0))
        ref = SnapshotRef(f"{kind}-{epoch}", 1, 0, epoch, kind, (0, 1))
        checkpoints.in_flight.add_part(place, SnapshotPart(f"t{epoch}", ref, whole=kind == "full"), 0.0)
        checkpoints.advance(wait=True)

    checkpoint(1, "delta")
    checkpoints.chains.add_full(place, SnapshotRef("late-1", 1, 0, 1, "full", (0, 1)))
    checkpoint(2, "full")
    checkpoint(3, "delta")
    assert [each.name for each in checkpoints.chains.durable[place]] == ["full-2", "delta-3"]


def test_a_rescale_to_the_present_parallelism_does_nothing(tmp_path: Path) -> None:
    job = SpanningJob(tmp_path, set())
    job.start()
    same, other = RescaleRequest(2, job.plan()), RescaleRequest(3, plan_of(summing, 3, job.sink))
    job.coordinator.ask(same)
    serve_requests(job.coordinator)
    assert same.done.result(0) == 0.0
    assert job.coordinator.epoch == -1, "not even a checkpoint was made"
    job.coordinator.ask(other)
    with pytest.raises(RescaleAsked):
        serve_requests(job.coordinator)
