"""The handle on a running job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from headwater.common.completable_future import CompletableFuture
from headwater.common.errors import HeadwaterError
from headwater.common.job_execution_result import JobExecutionResult
from headwater.common.job_id import JobID
from headwater.common.job_status import JobStatus


class JobClient(ABC):
    """What `execute_async` returns. The runtime implements it; all methods may be called from any thread."""

    @abstractmethod
    def get_job_id(self) -> JobID: ...

    @abstractmethod
    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """The status now; the future is done at once."""

    @abstractmethod
    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job in the middle of its epoch. The last checkpoint stays. Done when the job has ended."""

    @abstractmethod
    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """Done when the job has ended; fails with the job's error, or a CancelledError, if it did not finish."""

    @abstractmethod
    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The counters of the job as of its last committed epoch."""

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """End the job with a savepoint. When the job has ended, the future has the savepoint's path.

        With the first argument, all timers fire first.
        """
        raise HeadwaterError("this job cannot make savepoints")

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Make a savepoint while the job goes on; the future has its path."""
        raise HeadwaterError("this job cannot make savepoints")
