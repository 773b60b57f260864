"""The handle on a job that runs in this process."""

from __future__ import annotations

from concurrent.futures import CancelledError
from typing import Any

from headwater.common.completable_future import CompletableFuture
from headwater.common.errors import HeadwaterError
from headwater.common.job_client import JobClient
from headwater.common.job_execution_result import JobExecutionResult
from headwater.common.job_id import JobID
from headwater.common.job_status import JobStatus
from headwater.runtime.job.coordinator import Coordinator, JobCancelledError
from headwater.runtime.job.progress import JobProgress


class LocalJobClient(JobClient):
    """Status, progress, cancel and result. Safe to use from any thread."""

    def __init__(self, job_id: str) -> None:
        self._job_id = JobID(job_id)
        self._status = JobStatus.CREATED
        self._result: CompletableFuture[JobExecutionResult] = CompletableFuture()
        self._coordinator: Coordinator | None = None
        self._cancel_requested = False

    # --- for the job's thread

    def running(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._status = JobStatus.RUNNING
        if self._cancel_requested:
            coordinator.cancel()

    def ended(self, result: JobExecutionResult | None, error: BaseException | None) -> None:
        if error is None:
            assert result is not None
            self._status = JobStatus.FINISHED
            self._result.set_result(result)
        elif isinstance(error, JobCancelledError):
            self._status = JobStatus.CANCELED
            self._result.set_exception(CancelledError("the job was cancelled"))
        else:
            self._status = JobStatus.FAILED
            # Our own frames tell the user nothing; a bug of ours (another kind of error) keeps its traceback.
            self._result.set_exception(error.with_traceback(None) if isinstance(error, HeadwaterError) else error)

    # --- for everybody

    def get_job_id(self) -> JobID:
        return self._job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(self._status)

    def cancel(self) -> CompletableFuture[None]:
        ended: CompletableFuture[None] = CompletableFuture()
        self._result.add_done_callback(lambda _: ended.set_result(None))
        self._cancel_requested = True
        if not self._result.done():
            self._status = JobStatus.CANCELLING
            if self._coordinator is not None:
                self._coordinator.cancel()
        return ended

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return self._result

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        found = self._coordinator.progress.accumulators() if self._coordinator is not None else {}
        return CompletableFuture.completed(found)

    def checkpoints(self) -> list[dict[str, Any]]:
        """Statistics of the last checkpoints, oldest first: time, duration, sizes, per partition too."""
        history = list(self._coordinator.checkpoints.history) if self._coordinator is not None else []
        return [stats.as_dict() for stats in history]

    def progress(self) -> dict[str, Any]:
        """Epoch, records, rate, watermark, state entries, restarts and slots, as of the last completed epoch."""
        if self._coordinator is None:
            return JobProgress().as_dict()
        return self._coordinator.progress.as_dict()
