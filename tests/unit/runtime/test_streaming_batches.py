"""Micro-batches of a streaming DataFrame as epochs, without Spark: `StreamingQueryDriver` gets them from the test."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headwater.datastream import DataStream, StreamExecutionEnvironment
from headwater.runtime.epoch.decisions import Pace
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason
from headwater.runtime.epoch.messages import EpochHeader
from headwater.runtime.epoch.restart_policy import FixedDelay
from headwater.runtime.epoch.sizing import EpochSizer
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.endings import JobCancelledError, RescaleAsked
from headwater.runtime.job.requests import RescaleRequest
from headwater.runtime.spark.streaming import StreamingQueryDriver
from tests.unit.runtime.in_process_engine import FakeDataFrame, InProcessEngine, plan_of
from tests.unit.runtime.test_coordinator import Job, Sum


class Stream(FakeDataFrame):
    isStreaming = True


class Batch(FakeDataFrame):
    def unpersist(self) -> None:
        pass


def summing_rows(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_dataframe(Stream([])).uid("rows").key_by(lambda n: n % 2).process(Sum()).uid("sum")


class StreamingJob(Job):
    def begin(self) -> None:
        plan = plan_of(summing_rows, 1, self.sink)
        self.engine = InProcessEngine(plan, self.layout)
        policy = FixedDelay(attempts=3, delay_ms=0)
        sizer = EpochSizer(10_000, 10, 10)
        self.coordinator = Coordinator(plan, "job", self.engine, self.store, policy, sizer, retained=2)
        latest = self.store.latest()
        if latest is not None:
            self.coordinator.resume(latest, latest.incarnation + 1)
        self.driver = StreamingQueryDriver(self.coordinator, Pace(1_000))

    def batch(self, number: int, *rows: int) -> None:
        batch: Any = Batch(list(rows))
        self.driver._on_batch(batch, number)


@pytest.fixture
def job(tmp_path: Path) -> StreamingJob:
    job = StreamingJob(tmp_path)
    job.begin()
    return job


def test_each_batch_is_an_epoch_with_a_complete_checkpoint(job: StreamingJob) -> None:
    for number in range(3):
        job.batch(number, 1)
        manifest = job.store.latest()
        assert manifest is not None and manifest.spark == {"batch_id": number}
        assert job.results() == Counter({(1, n + 1): 1 for n in range(number + 1)})


def test_a_batch_that_counts_already_is_skipped(job: StreamingJob) -> None:
    job.batch(0, 1)
    job.begin()
    job.batch(0, 1)
    job.batch(1, 1)
    assert job.results() == Counter({(1, 1): 1, (1, 2): 1})


@pytest.mark.parametrize("lost_in", [0, 1, 2])
def test_a_job_that_loses_state_in_a_batch_goes_back_and_runs_the_batch_again(job: StreamingJob, lost_in: int) -> None:
    lost: list[int] = []

    def lose(header: EpochHeader) -> None:
        if header.attempt.epoch == lost_in and not lost:
            lost.append(lost_in)
            job.engine.slots.by_place.clear()
            raise AttemptFailedError("state is gone", FailureReason.STATE_LOST)

    job.engine.before = lose
    for number in range(3):
        job.batch(number, 1)
    assert lost == [lost_in] and job.coordinator.progress.rewinds == 1
    assert job.results() == Counter({(1, n): 1 for n in (1, 2, 3)})


def test_a_cancelled_job_runs_no_batch(job: StreamingJob) -> None:
    job.batch(0, 1)
    job.coordinator.cancel()
    with pytest.raises(JobCancelledError):
        job.batch(1, 1)
    assert len(job.engine.headers) == 1


def test_a_request_is_served_before_the_batch(job: StreamingJob) -> None:
    job.batch(0, 1)
    job.coordinator.ask(RescaleRequest(2, plan_of(summing_rows, 2, job.sink)))
    with pytest.raises(RescaleAsked):
        job.batch(1, 1)
    assert job.results() == Counter({(1, 1): 1})
