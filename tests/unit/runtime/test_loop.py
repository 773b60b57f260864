"""The epoch loop: when it runs epochs, when it sleeps, and what wakes it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.checkpoint.savepoint.savepoint import open_savepoint
from headwater.common import WatermarkStrategy
from headwater.datastream import DataStream, StreamExecutionEnvironment
from headwater.runtime.epoch.decisions import Pace
from headwater.runtime.epoch.restart_policy import NoRestart
from headwater.runtime.epoch.sizing import EpochSizer
from headwater.runtime.epoch.wakeup import Wakeup
from headwater.runtime.job.coordinator import VAIN_CALLS, Coordinator
from headwater.runtime.job.endings import JobCancelledError
from headwater.runtime.job.loop import run_epochs
from headwater.runtime.job.requests import SavepointRequest
from headwater.testing import ScriptSource
from tests.unit.runtime.in_process_engine import InProcessEngine, plan_of
from tests.unit.runtime.test_coordinator import Job, Sum
from tests.waiting import wait_until

HOUR_MS = 3_600_000


def open_ended(env: StreamExecutionEnvironment) -> DataStream:
    """Three records; then nothing comes any more."""
    source = ScriptSource([1, 2, 3], bounded=False)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "script").uid("script")
    return stream.key_by(lambda n: n).process(Sum()).uid("sum")


class IdleJob(Job):
    """A job that has read all there is, and polls its source once in an hour."""

    def start_idle(self, poll_ms: int = HOUR_MS) -> None:
        plan = plan_of(open_ended, 1, self.sink)
        self.engine = InProcessEngine(plan, self.layout)
        self.coordinator = Coordinator(
            plan, "job", self.engine, self.store, NoRestart(), EpochSizer(10_000, 10, 10), retained=2
        )
        self.error: BaseException | None = None
        self._pace = Pace(HOUR_MS, poll_ms)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        wait_until(self.is_dry)

    def _run(self) -> None:
        try:
            run_epochs(self.coordinator, self._pace)
        except BaseException as error:
            self.error = error

    def is_dry(self) -> bool:
        """It has slept at least once since an epoch found nothing."""
        return self.coordinator.dry_since_ms is not None and self.coordinator.checkpoints.in_flight is None

    def end(self) -> None:
        self.coordinator.cancel()
        self._thread.join(30)
        assert not self._thread.is_alive()
        self.coordinator.close()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[IdleJob]:
    job = IdleJob(tmp_path)
    yield job
    job.end()
    assert isinstance(job.error, JobCancelledError)


def test_a_source_that_was_dry_is_left_alone_until_the_poll_interval_has_passed(
    job: IdleJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.runtime.epoch.decisions.IDLE_MS", 5)
    waits: list[float] = []

    def wait(self: InProcessEngine, seconds: float, wakeup: Wakeup) -> bool:
        waits.append(seconds)
        wakeup.wait(seconds)
        return False

    monkeypatch.setattr(InProcessEngine, "wait", wait)
    job.start_idle()
    wait_until(lambda: len(waits) > 20)
    assert len(job.engine.headers) == 2, "one that read, one that found nothing"
    assert sorted(job.sink.results()) == [(1, 1), (2, 2), (3, 3)]


def test_a_source_that_calls_in_vain_is_polled_and_keeps_no_processor_busy(
    job: IdleJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket whose other end is gone can always be read."""
    calls: list[float] = []

    def wait(self: InProcessEngine, seconds: float, wakeup: Wakeup) -> bool:
        calls.append(seconds)
        return True

    monkeypatch.setattr(InProcessEngine, "wait", wait)
    monkeypatch.setattr(InProcessEngine, "watches", True)
    monkeypatch.setattr(ScriptSource, "waits", True)
    job.start_idle()
    wait_until(lambda: len(job.engine.headers) == 2 + VAIN_CALLS)
    time.sleep(0.1)
    assert len(calls) == VAIN_CALLS and len(job.engine.headers) == 2 + VAIN_CALLS


def test_it_is_asked_again_after_the_poll_interval(job: IdleJob) -> None:
    job.start_idle(poll_ms=1)
    wait_until(lambda: len(job.engine.headers) > 5)


def test_a_savepoint_is_served_at_once_though_the_job_sleeps(
    job: IdleJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.runtime.epoch.decisions.IDLE_MS", HOUR_MS)
    job.start_idle()
    request = SavepointRequest(str(tmp_path / "savepoint"))
    job.coordinator.ask(request)
    assert open_savepoint(request.path.result(30)).is_savepoint


def test_a_cancel_ends_a_job_that_sleeps(job: IdleJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.runtime.epoch.decisions.IDLE_MS", HOUR_MS)
    job.start_idle()
    job.coordinator.cancel()
    wait_until(lambda: job.error is not None)


def test_input_that_the_engine_reports_is_read_at_once(job: IdleJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.runtime.epoch.decisions.IDLE_MS", HOUR_MS)
    reported: list[float] = []

    def wait(self: InProcessEngine, seconds: float, wakeup: Wakeup) -> bool:
        if len(reported) < 3:
            reported.append(seconds)
            return True
        wakeup.wait(seconds)
        return False

    monkeypatch.setattr(InProcessEngine, "wait", wait)
    job.start_idle()
    wait_until(lambda: len(job.engine.headers) == 2 + 3)


def test_the_engine_is_told_of_each_complete_checkpoint(job: IdleJob) -> None:
    job.start_idle()
    wait_until(lambda: job.coordinator.checkpoints.in_flight is None)
    manifests = {f"-{header.attempt.epoch}-0" for header in job.engine.headers if header.cut}
    assert {token[token.index("-1-") + 2 :] for token in job.engine.completed} <= manifests
    assert job.engine.completed[-1] == job.coordinator.checkpoints.committed_token
