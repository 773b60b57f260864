"""An executor for tests: keeps what it is given, and lets the test play the runtime."""

from __future__ import annotations

from typing import Any

from headwater.common.completable_future import CompletableFuture
from headwater.common.configuration import Configuration
from headwater.common.job_client import JobClient
from headwater.common.job_execution_result import JobExecutionResult
from headwater.common.job_id import JobID
from headwater.common.job_status import JobStatus
from headwater.graph.plan import JobPlan


class RecordedJob(JobClient):
    """A job that does nothing until the test says how it ends."""

    def __init__(self) -> None:
        self.cancelled = False
        self.result: CompletableFuture[JobExecutionResult] = CompletableFuture()

    def finish(self) -> None:
        self.result.set_result(JobExecutionResult(self.get_job_id(), 1))

    def get_job_id(self) -> JobID:
        return JobID("0" * 32)

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(JobStatus.RUNNING)

    def cancel(self) -> CompletableFuture[None]:
        self.cancelled = True
        if not self.result.done():
            self.finish()
        return CompletableFuture.completed(None)

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return self.result

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        return CompletableFuture.completed({})


class RecordingExecutor:
    """`on_launch(job, plan)` is called for each launched job."""

    def __init__(self, on_launch: Any = lambda job, plan: job.finish()) -> None:
        self.launched: list[tuple[JobPlan, Configuration]] = []
        self.jobs: list[RecordedJob] = []
        self.on_launch = on_launch

    def launch(self, plan: JobPlan, configuration: Configuration, replan: Any = None) -> JobClient:
        self.launched.append((plan, configuration))
        job = RecordedJob()
        self.jobs.append(job)
        self.on_launch(job, plan)
        return job
