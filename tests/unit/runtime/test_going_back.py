"""What a job must know when it goes back, or is asked for a checkpoint before it has begun. Found by the simulator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.restore.rescale import plan_restore
from headwater.checkpoint.savepoint.savepoint import write_savepoint
from headwater.checkpoint.store import ManifestStore
from headwater.common import Configuration
from headwater.common.connector import Committer
from headwater.common.errors import CheckpointError, FencedError
from headwater.datastream import DataStream, StreamExecutionEnvironment
from headwater.runtime.background import THREADS, Background
from headwater.runtime.epoch.messages import EpochHeader
from headwater.runtime.epoch.restart_policy import FixedDelay
from headwater.runtime.epoch.sizing import EpochSizer
from headwater.runtime.job import launcher
from headwater.runtime.job.committers import SinkCommitters
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.endings import RescaleAsked
from headwater.runtime.job.requests import RescaleRequest, SavepointRequest
from headwater.runtime.job.savepoint_copies import SavepointCopies
from headwater.runtime.job.start import operator_shapes, prepare_start
from tests.unit.runtime.in_process_engine import Build, FakeDataFrame, InProcessEngine, plan_of
from tests.unit.runtime.test_checkpoints import SpanningJob, kill_in
from tests.unit.runtime.test_coordinator import EPOCH_RECORDS, NUMBERS, Job, Sum, expected, summing


class RescaledJob(Job):
    """A job whose every start may have another parallelism, or another program."""

    def begin(
        self,
        parallelism: int,
        manifest: Manifest | None,
        background: Background = THREADS,
        build: Build = summing,
    ) -> None:
        assert self.layout is not None
        plan = plan_of(build, parallelism, self.sink)
        self.engine = InProcessEngine(plan, self.layout)
        self.coordinator = Coordinator(
            plan, "job", self.engine, self.store, FixedDelay(attempts=3, delay_ms=0),
            EpochSizer(10_000, EPOCH_RECORDS, EPOCH_RECORDS), retained=2, background=background,
        )  # fmt: skip
        if manifest is not None:
            restores = plan_restore(manifest, operator_shapes(plan), str(self.layout.root))
            self.coordinator.resume(manifest, manifest.incarnation + 1, restores=restores)


class Lazy:
    """A background in which nothing gets done before somebody waits for it, and not only for a moment."""

    def start(self, name: str, work: Callable[[], Any]) -> Future[Any]:
        return THREADS.start(name, work)

    def queue(self, name: str) -> Executor:
        return _LazyQueue()


class _LazyQueue(Executor):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return _LazyFuture(lambda: fn(*args, **kwargs))


class _LazyFuture(Future[Any]):
    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__()
        self._work = work

    def result(self, timeout: float | None = None) -> Any:
        if timeout is not None and timeout < 60:
            raise TimeoutError
        return self._work()


class Stop(BaseException):
    pass


def test_a_job_that_goes_back_to_its_first_own_checkpoint_does_not_load_the_one_it_was_restored_from(
    tmp_path: Path,
) -> None:
    job = RescaledJob(tmp_path)
    job.begin(2, None)

    def stop(header: EpochHeader) -> None:
        if header.attempt.epoch == 3:
            raise Stop

    job.engine.before = stop
    with pytest.raises(Stop):
        job.run()
    job.begin(3, job.store.latest(), Lazy())
    lost: list[int] = []

    def lose(header: EpochHeader) -> None:
        # The manifest of epoch 3, the first of the new shape, is on its way: going back will wait for it.
        if header.attempt.epoch == 5 and not lost:
            assert header.base.in_flight is not None and header.restores
            lost.append(5)
            job.engine.kill_slot(1, 0)

    job.engine.before = lose
    job.run()
    assert lost and job.coordinator.progress.rewinds == 1
    assert job.results() == expected()


def test_a_checkpoint_before_the_first_epoch_knows_the_splits_of_its_sources(tmp_path: Path) -> None:
    job = RescaledJob(tmp_path)
    job.begin(2, None)
    job.coordinator.ask(RescaleRequest(3))
    with pytest.raises(RescaleAsked):
        job.run()
    assert job.results() == {}
    job.begin(3, job.store.latest())
    job.run()
    assert job.results() == expected()


def test_a_job_with_a_checkpoint_of_its_own_does_not_need_the_savepoint_it_began_with(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.start()
    job.run()
    assert job.layout is not None
    manifest = job.store.latest()
    assert manifest is not None
    gone = tmp_path / "savepoint"
    directory = {"execution.checkpointing.dir": str(job.layout.root), "execution.state-recovery.path": str(gone)}
    start = prepare_start(job.plan(), Configuration.from_dict(directory))
    start.release()
    assert start.savepoint is None
    fresh = {**directory, "execution.checkpointing.dir": str(tmp_path / "fresh")}
    with pytest.raises(CheckpointError, match="does not exist"):
        prepare_start(job.plan(), Configuration.from_dict(fresh))
    write_savepoint(job.layout, manifest, gone)
    start = prepare_start(job.plan(), Configuration.from_dict(fresh))
    start.release()
    assert start.savepoint is not None


def test_what_is_left_of_a_claimed_savepoint_goes_when_its_job_starts_again(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.start()
    job.run()
    manifest = job.store.latest()
    assert job.layout is not None and manifest is not None
    savepoint = tmp_path / "savepoint"
    write_savepoint(job.layout, manifest, savepoint)
    (savepoint / "manifests" / f"epoch-{manifest.epoch:012d}.manifest").unlink()
    settings = {"execution.checkpointing.dir": str(job.layout.root), "execution.state-recovery.path": str(savepoint)}
    prepare_start(job.plan(), Configuration.from_dict(settings)).release()
    assert savepoint.exists(), "it is not the job's to delete"
    settings["execution.state-recovery.claim-mode"] = "CLAIM"
    prepare_start(job.plan(), Configuration.from_dict(settings)).release()
    assert not savepoint.exists()


class Pending(Committer):
    """Has pending output, to which another driver adds."""

    def __init__(self) -> None:
        self.pending = ["left by an attempt"]

    def commit(self, committables: list[Any]) -> None:
        pass

    def find_leftovers(self, job_id: str) -> list[Any]:
        return list(self.pending)

    def delete_leftovers(self, leftovers: list[Any]) -> None:
        self.pending = [item for item in self.pending if item not in leftovers]


def test_a_driver_that_was_replaced_deletes_nothing_of_the_next_one() -> None:
    committers = SinkCommitters(plan_of(summing))
    pending = Pending()
    committers._committers = {"sink": ("sink", pending)}

    def next_one_prepares() -> None:
        pending.pending.append("prepared by the next driver")

    committers.clean_up("job", next_one_prepares)
    assert pending.pending == ["prepared by the next driver"]

    def fenced() -> None:
        raise FencedError("another driver has the job")

    with pytest.raises(FencedError):
        committers.clean_up("job", fenced)
    assert pending.pending == ["prepared by the next driver"]


def test_a_job_is_not_stopped_with_a_savepoint_while_another_driver_goes_on_with_it(tmp_path: Path) -> None:
    job = RescaledJob(tmp_path)
    store = job.store
    store.take_over("first")
    manifest = Manifest("id", "job", 0, 1, 0, 0, "plan", 128)
    store.write(manifest)
    stopped, fenced = (SavepointRequest(str(tmp_path / name), stop=True) for name in ("one", "two"))
    copies = SavepointCopies(THREADS)
    copies.start(store, manifest, stopped, 0)
    assert copies.wait(stopped, 60_000) == stopped.target
    job.store.take_over("second")
    copies.start(store, manifest, fenced, 0)
    with pytest.raises(FencedError):
        copies.wait(fenced, 60_000)


def test_a_job_whose_last_epoch_is_lost_before_any_checkpoint_is_not_finished(tmp_path: Path) -> None:
    job = SpanningJob(tmp_path, set(), tolerable_failures=1)
    job.start()
    written: list[str] = []
    write = ManifestStore.write

    def fails_once(store: ManifestStore, manifest: Manifest) -> Any:
        written.append("x")
        if len(written) == 1:
            job.engine.kill_slot(1, 0)
            raise CheckpointError("no space left")
        return write(store, manifest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ManifestStore, "write", fails_once)
        job.run()
    assert job.coordinator.progress.rewinds == 1
    assert job.results() == expected()


def test_a_checkpoint_that_fails_while_the_job_goes_back_does_not_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = SpanningJob(tmp_path, {2}, tolerable_failures=0)
    job.start()
    job.coordinator.checkpoints._background = Lazy()
    monkeypatch.setattr("headwater.runtime.slot.slot.GRACE_SECONDS", 60)
    fired = kill_in(job, 4)
    write, failed = ManifestStore.write, list[int]()

    def fails_once(store: ManifestStore, manifest: Manifest) -> Any:
        if not failed:
            failed.append(manifest.epoch)
            raise CheckpointError("no space left")
        return write(store, manifest)

    monkeypatch.setattr(ManifestStore, "write", fails_once)
    job.run()
    assert fired and failed == [2] and job.coordinator.progress.rewinds == 1
    assert job.results() == expected()


LATE = [1_000_000 + number for number in range(60)]


def numbers(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection(NUMBERS).uid("numbers")


def one_source(env: StreamExecutionEnvironment) -> DataStream:
    return numbers(env).key_by(lambda n: n % 3).process(Sum()).uid("sum")


def one_source_more(env: StreamExecutionEnvironment) -> DataStream:
    """As `one_source`, and the sums of other numbers by themselves."""
    return with_late(numbers(env), env.from_collection(LATE))


def one_dataframe_more(env: StreamExecutionEnvironment) -> DataStream:
    return with_late(numbers(env), env.from_dataframe(FakeDataFrame(LATE)))


def with_late(first: DataStream, late: DataStream) -> DataStream:
    keyed = first.union(late.uid("late")).key_by(lambda n: n % 3 if n < LATE[0] else "late")
    return keyed.process(Sum()).uid("sum")


def expected_of_both() -> Counter[Any]:
    return expected() + Counter({("late", sum(LATE[: n + 1])): 1 for n in range(len(LATE))})


@pytest.mark.parametrize("changed", [one_source_more, one_dataframe_more])
def test_a_source_that_the_checkpoint_does_not_know_is_read_from_its_beginning_again(
    tmp_path: Path, changed: Build
) -> None:
    job = RescaledJob(tmp_path)
    job.begin(2, None, build=one_source)

    def stop(header: EpochHeader) -> None:
        if header.attempt.epoch == 3:
            raise Stop

    job.engine.before = stop
    with pytest.raises(Stop):
        job.run()
    job.begin(2, job.store.latest(), build=changed)
    job.coordinator.checkpoints.schedule.due = lambda now_ms: False  # type: ignore[method-assign]
    fired = kill_in(job, 5)
    job.run()
    assert fired and job.coordinator.progress.rewinds == 1
    assert job.results() == expected_of_both()
    assert job.coordinator.progress.counters["records_in"] == len(NUMBERS) + len(LATE)


def test_a_job_that_begins_with_the_state_of_a_finished_one_reads_its_sources(tmp_path: Path) -> None:
    first = RescaledJob(tmp_path / "first")
    first.begin(2, None, build=one_source)
    first.run()
    manifest = first.store.latest()
    assert first.layout is not None and manifest is not None and manifest.finished
    write_savepoint(first.layout, manifest, tmp_path / "savepoint")
    job = RescaledJob(tmp_path / "second")
    plan = plan_of(one_source_more, 2, job.sink)
    assert job.layout is not None
    settings = {
        "execution.checkpointing.dir": str(job.layout.root),
        "execution.state-recovery.path": str(tmp_path / "savepoint"),
    }
    launched = launcher.Job(plan, Configuration.from_dict(settings), None)
    launched.prepare()
    job.begin(2, None, build=one_source_more)
    launched._resume(job.coordinator)
    job.run()
    launched._start.release()
    assert job.results() == expected_of_both() - expected()
