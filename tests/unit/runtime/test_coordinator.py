"""The coordinator with an engine in this process: whole jobs in milliseconds, with retries, crashes and resumes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import JobFailedError, UserCodeError
from headwater.common.job_status import JobStatus
from headwater.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import ValueStateDescriptor
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.decisions import CHECKPOINT, Pace
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason
from headwater.runtime.epoch.messages import EpochHeader, PartitionAck
from headwater.runtime.epoch.restart_policy import FixedDelay, NoRestart, RestartPolicy
from headwater.runtime.epoch.sizing import EpochSizer
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.endings import JobCancelledError
from headwater.runtime.job.loop import run_epochs
from headwater.testing import CollectingSink
from tests.unit.runtime.in_process_engine import InProcessEngine, plan_of

NUMBERS = list(range(100))
PACE = Pace(epoch_ms=10_000)
EPOCH_RECORDS = 10


class Sum(KeyedProcessFunction):
    def __init__(self, fails_at: int | None = None) -> None:
        self.fails_at = fails_at

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        if value == self.fails_at:
            raise ValueError("cannot stand it")
        self.total.update((self.total.value() or 0) + value)
        yield ctx.get_current_key(), self.total.value()


def summing(env: StreamExecutionEnvironment, fails_at: int | None = None) -> DataStream:
    return env.from_collection(NUMBERS).key_by(lambda n: n % 3).process(Sum(fails_at)).uid("sum")


def expected() -> Counter[Any]:
    totals = [0, 0, 0]
    result: Counter[Any] = Counter()
    for number in NUMBERS:
        totals[number % 3] += number
        result[number % 3, totals[number % 3]] += 1
    return result


class Job:
    """One job on one directory, started as often as a test likes."""

    def __init__(self, directory: Path, *, checkpoints: bool = True, mode: str = "STREAMING") -> None:
        self.sink = CollectingSink(str(directory / "out"))
        self.layout = CheckpointLayout(directory / "checkpoints") if checkpoints else None
        if self.layout is not None:
            self.layout.create()
        self.mode = mode
        self.engine: InProcessEngine
        self.coordinator: Coordinator

    def plan(self, fails_at: int | None = None) -> JobPlan:
        return plan_of(lambda env: summing(env, fails_at), 2, self.sink, **{"execution.runtime-mode": self.mode})

    def start(self, policy: RestartPolicy | None = None, fails_at: int | None = None) -> None:
        plan = self.plan(fails_at)
        self.engine = InProcessEngine(plan, self.layout)
        self.coordinator = Coordinator(
            plan,
            "job",
            self.engine,
            self.store if self.layout is not None else None,
            policy or FixedDelay(attempts=3, delay_ms=0),
            EpochSizer(10_000, EPOCH_RECORDS, EPOCH_RECORDS),
            retained=2,
        )
        latest = self.store.latest() if self.layout is not None else None
        if latest is not None:
            self.coordinator.resume(latest, latest.incarnation + 1)

    @property
    def store(self) -> ManifestStore:
        assert self.layout is not None
        return ManifestStore(self.layout)

    def run(self) -> None:
        run_epochs(self.coordinator, PACE)
        self.coordinator.checkpoints.wait_until_noted()

    def results(self) -> Counter[Any]:
        return Counter(self.sink.results())


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Each of its epochs ends with a checkpoint, however slow the machine is."""
    monkeypatch.setattr("headwater.runtime.job.checkpoints.GRACE_SECONDS", 60)
    monkeypatch.setattr("headwater.runtime.slot.slot.GRACE_SECONDS", 60)
    return Job(tmp_path)


class Fault:
    """Raises at chosen (epoch, attempt number)s; remembers that it did."""

    def __init__(self, *when: tuple[int, int], state_lost: bool = False) -> None:
        self.when = set(when)
        self.state_lost = state_lost
        self.fired: list[tuple[int, int]] = []

    def __call__(self, header: EpochHeader) -> None:
        now = (header.attempt.epoch, header.attempt.number)
        if now in self.when:
            self.fired.append(now)
            reason = FailureReason.STATE_LOST if self.state_lost else FailureReason.PROCESS_LOST
            raise AttemptFailedError(f"a worker died in {now}", reason)


def test_a_job_that_tries_an_epoch_again_is_restarting_until_it_is_accepted(job: Job) -> None:
    fault, seen = Fault((2, 0)), []
    job.start()

    def before(header: EpochHeader) -> None:
        seen.append((header.attempt.number, job.coordinator.state.status))
        fault(header)

    job.engine.before = before
    job.run()
    assert seen.count((1, JobStatus.RESTARTING)) == 1
    assert {status for number, status in seen if number == 0} == {JobStatus.CREATED, JobStatus.RUNNING}
    assert job.coordinator.state.status is JobStatus.RUNNING, "whoever runs the job says that it has finished"


def test_a_job_that_recovers_in_an_epoch_for_a_checkpoint_runs_again(job: Job) -> None:
    """It may have nothing to read for hours after that."""
    job.start()
    job.engine.before = Fault((0, 0))
    job.coordinator.checkpoint_now(CHECKPOINT)
    assert job.engine.before.fired
    assert job.coordinator.state.status is JobStatus.RUNNING


def test_a_job_from_its_first_epoch_to_its_last(job: Job) -> None:
    job.start()
    job.run()
    assert job.results() == expected()
    assert job.coordinator.finished and job.coordinator.progress.records_in == 100
    last = job.store.latest()
    # Ten epochs of ten records, one that finds the source at its end, and the final one.
    assert last is not None and last.finished and 10 <= last.epoch <= 11
    assert last.counters["records_in"] == 100 and last.counters["sum.records_in"] == 100
    assert len(job.store.epochs()) == 2, "older manifests are not kept"
    assert {path.name for path in job.layout.snapshots.iterdir()} <= {
        name for epoch in job.store.epochs() for name in job.store.load(epoch).snapshot_names()
    }, "files that no manifest names were left"


def test_processing_time_never_goes_back_and_is_one_per_epoch(job: Job) -> None:
    job.start()
    fault = Fault((3, 0), (3, 1))
    job.engine.before = fault
    job.run()
    times: dict[int, set[int]] = {}
    for header in job.engine.headers:
        times.setdefault(header.attempt.epoch, set()).add(header.now_ms)
    assert all(len(stamps) == 1 for stamps in times.values()), "a retry must see the same time"
    stamps = [times[epoch].pop() for epoch in sorted(times)]
    assert stamps == sorted(set(stamps))


@pytest.mark.parametrize("moment", ["before", "after_stages"])
def test_an_attempt_that_fails_is_repeated_and_counts_once(job: Job, moment: str) -> None:
    job.start()
    fault = Fault((0, 0), (4, 0), (4, 1))
    setattr(job.engine, moment, fault)
    job.run()
    assert fault.fired == [(0, 0), (4, 0), (4, 1)]
    assert job.results() == expected()
    assert job.coordinator.progress.restarts == 3
    assert job.coordinator.progress.restored_slots == 0, "the slots were there: undo is enough"


def test_a_lost_slot_is_restored_from_its_snapshots(job: Job) -> None:
    job.start()

    def kill(header: EpochHeader) -> None:
        if header.attempt.epoch == 5 and header.attempt.number == 0:
            job.engine.kill_slot(1, 1)
            raise AttemptFailedError("the slot is gone", FailureReason.PROCESS_LOST)

    job.engine.after_stages = kill
    job.run()
    assert job.results() == expected()
    assert job.coordinator.progress.restored_slots == 1


def test_attempts_are_numbered_so_that_older_ones_are_fenced(job: Job) -> None:
    job.start()
    job.engine.before = Fault((2, 0), (2, 1))
    job.run()
    orders = [header.attempt.order() for header in job.engine.headers]
    assert orders == sorted(set(orders))
    assert len({header.attempt.id for header in job.engine.headers}) == len(orders)


def test_the_restart_policy_ends_the_job(job: Job) -> None:
    job.start(FixedDelay(attempts=2, delay_ms=0))
    job.engine.before = Fault((3, 0), (3, 1), (3, 2), (3, 3))
    with pytest.raises(JobFailedError, match="allows no more"):
        job.run()
    assert len(job.engine.headers) == 3 + 3
    assert job.coordinator.epoch == 2
    # What was committed stays, and the next start goes on from there.
    job.start()
    job.run()
    assert job.results() == expected()


def test_a_completed_epoch_sets_the_count_of_failures_back(job: Job) -> None:
    job.start(FixedDelay(attempts=2, delay_ms=0))
    job.engine.before = Fault(*((epoch, number) for epoch in (1, 3, 5, 7) for number in (0, 1)))
    job.run()
    assert job.coordinator.progress.restarts == 8
    assert job.results() == expected()


def test_no_restart_means_none(job: Job) -> None:
    job.start(NoRestart())
    job.engine.before = Fault((1, 0))
    with pytest.raises(JobFailedError):
        job.run()


def test_an_error_of_the_user_is_not_retried_and_the_checkpoint_stays_usable(job: Job) -> None:
    job.start(fails_at=55)
    with pytest.raises(UserCodeError, match="cannot stand it") as raised:
        job.run()
    assert raised.value.epoch == 5 and raised.value.record_repr == "55"
    assert job.coordinator.progress.restarts == 0
    assert len(job.sink.results()) == 50
    job.start()
    job.run()
    assert job.results() == expected()


@pytest.mark.parametrize("dies_in_epoch", [0, 1, 6])
def test_a_driver_that_dies_resumes(job: Job, dies_in_epoch: int) -> None:
    class Dies(BaseException):
        """Not an error that anything handles: the process is gone."""

    def die(header: EpochHeader) -> None:
        if header.attempt.epoch == dies_in_epoch:
            raise Dies

    job.start()
    job.engine.after_stages = die
    with pytest.raises(Dies):
        job.run()
    assert len(job.sink.results()) == dies_in_epoch * EPOCH_RECORDS
    job.start()
    assert job.coordinator.epoch == dies_in_epoch - 1
    job.run()
    assert job.results() == expected()
    assert {header.attempt.incarnation for header in job.engine.headers} == {2 if dies_in_epoch else 1}


@pytest.mark.parametrize("step", ["manifest-written", "sink-committed"])
def test_a_driver_that_dies_around_the_commit_commits_once(
    job: Job, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dies(BaseException):
        pass

    def reached(at: str, epoch: int) -> None:
        if (at, epoch) == (step, 4):
            raise Dies

    job.start()
    with monkeypatch.context() as patch:
        patch.setattr("headwater.runtime.epoch.fault.hook", reached)
        with pytest.raises(Dies):
            job.run()
    assert len(job.sink.results()) == (40 if step == "manifest-written" else 50)
    job.start()
    assert len(job.sink.results()) == 50, "the epoch has its manifest: its output must become visible"
    job.run()
    assert job.results() == expected()


def test_an_epoch_that_a_partition_did_not_acknowledge_is_not_committed(job: Job) -> None:
    job.start()
    run = job.engine.run

    def forgetful(*args: Any) -> list[Any]:
        messages = run(*args)
        if job.coordinator.epoch == 2:
            return [m for m in messages if not (isinstance(m, PartitionAck) and m.place.partition == 1)]
        return messages

    job.engine.run = forgetful  # type: ignore[method-assign]
    with pytest.raises(JobFailedError, match="nothing of the epoch was committed"):
        job.run()
    assert len(job.sink.results()) == 30
    assert job.store.latest().epoch == 2  # type: ignore[union-attr]


def test_cancel_gives_the_epoch_up_and_keeps_the_checkpoint(job: Job) -> None:
    job.start()

    def cancel(header: EpochHeader) -> None:
        if header.attempt.epoch == 3:
            job.coordinator.cancel()
            raise AttemptFailedError("cancelled by Spark", FailureReason.PROCESS_LOST)

    job.engine.before = cancel
    with pytest.raises(JobCancelledError):
        job.run()
    assert job.engine.cancelled
    assert len(job.sink.results()) == 30
    job.start()
    job.run()
    assert job.results() == expected()


def test_without_checkpoints_lost_state_ends_a_streaming_job(tmp_path: Path) -> None:
    job = Job(tmp_path, checkpoints=False)
    job.start()

    def kill(header: EpochHeader) -> None:
        if header.attempt.epoch == 5 and header.attempt.number == 0:
            job.engine.kill_slot(1, 0)

    job.engine.before = kill
    with pytest.raises(JobFailedError, match="nothing to go back to"):
        job.run()


def test_batch_shows_its_results_at_the_end_and_begins_again_after_a_loss(tmp_path: Path) -> None:
    job = Job(tmp_path, checkpoints=False, mode="BATCH")
    job.start()
    visible: list[int] = []
    killed: list[int] = []

    def watch(header: EpochHeader) -> None:
        visible.append(len(job.sink.results()))
        if header.attempt.epoch == 5 and not killed:
            killed.append(5)
            job.engine.kill_slot(1, 0)

    job.engine.before = watch
    job.run()
    assert killed and set(visible) == {0}
    assert job.results() == expected()
