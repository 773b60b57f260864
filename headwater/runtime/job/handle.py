"""The handle of a job that runs in this process."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from headwater.checkpoint.storage.base import StorageSpec, is_remote
from headwater.common.completable_future import CompletableFuture
from headwater.common.errors import ConfigurationError, HeadwaterError, short_repr
from headwater.common.ids import Place
from headwater.common.job_client import JobClient
from headwater.common.job_execution_result import JobExecutionResult
from headwater.common.job_id import JobID
from headwater.common.job_status import JobStatus
from headwater.common.query_error import QueryError, QueryProblem
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.job_states import JobState
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.endings import JobCancelledError
from headwater.runtime.job.exception_history import ExceptionHistory
from headwater.runtime.job.job_description import checkpoint_details, description, with_tasks
from headwater.runtime.job.metrics.answers import metrics_of, why_of
from headwater.runtime.job.progress import JobProgress
from headwater.runtime.job.requests import CheckpointRequest, ReplayRequest, RescaleRequest, SavepointRequest
from headwater.runtime.job.state_directory import StateDirectory

T = TypeVar("T")


def _as_completable(future: Future[T]) -> CompletableFuture[T]:
    result: CompletableFuture[T] = CompletableFuture()

    def pass_on(ended: Future[T]) -> None:
        error = ended.exception()
        if error is None:
            result.set_result(ended.result())
        else:
            result.set_exception(error)

    future.add_done_callback(pass_on)
    return result


def end_of(error: BaseException | None) -> JobStatus:
    """Return the state in which a job is that ended with `error`."""
    if error is None:
        return JobStatus.FINISHED
    return JobStatus.CANCELED if isinstance(error, JobCancelledError) else JobStatus.FAILED


class LocalJobClient(JobClient):
    """Status, progress, cancel and result. Safe to use from any thread."""

    def __init__(
        self,
        job_id: str,
        plan: JobPlan,
        savepoint_directory: str | None = None,
        replan: Callable[[int], JobPlan] | None = None,
        storage_options: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._job_id = JobID(job_id)
        self._plan = plan
        self._savepoint_directory = savepoint_directory
        self._replan = replan
        self._storage_options = dict(storage_options or {})
        """Options to open a savepoint directory that is a URL."""
        self._settings = dict(settings or {})
        """All that is set, for people: without secrets."""
        self.exception_history = ExceptionHistory()
        self._state = JobState()
        self._result: CompletableFuture[JobExecutionResult] = CompletableFuture()
        self._coordinator: Coordinator | None = None
        self._cancel_requested = False
        self.state_directory: StateDirectory | None = None
        """Where the state of the running plan can be read."""

    # --- for the job's thread

    def running(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._plan = coordinator.plan
        coordinator.begin(self._state)
        if self._cancel_requested:
            coordinator.cancel()

    def forget_state(self) -> None:
        """The plan's slots end: their state cannot be read any more."""
        directory, self.state_directory = self.state_directory, None
        if directory is not None:
            directory.close()

    def ending(self, error: BaseException | None) -> None:
        """The job has ended, but those who wait for it have not been told yet."""
        status = end_of(error)
        if error is not None and status is JobStatus.FAILED:
            self.exception_history.add(error)
        self._state.to(status)

    def ended(self, result: JobExecutionResult | None, error: BaseException | None) -> None:
        self.ending(error)
        if error is None:
            assert result is not None
            self._result.set_result(result)
        elif isinstance(error, JobCancelledError):
            self._result.set_exception(CancelledError("the job was cancelled"))
        else:
            # headwater's own frames tell the user nothing. Any other error is a bug of headwater: keep its traceback.
            self._result.set_exception(error.with_traceback(None) if isinstance(error, HeadwaterError) else error)

    # --- for everybody

    def get_job_id(self) -> JobID:
        return self._job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(self._state.status)

    def cancel(self) -> CompletableFuture[None]:
        ended: CompletableFuture[None] = CompletableFuture()
        self._result.add_done_callback(lambda _: ended.set_result(None))
        self._cancel_requested = True
        if not self._result.done():
            self._state.to(JobStatus.CANCELLING)
            if self._coordinator is not None:
                self._coordinator.cancel()
        return ended

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return self._result

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        found = self._coordinator.progress.accumulators() if self._coordinator is not None else {}
        return CompletableFuture.completed(found)

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Copy the next checkpoint to a new directory in `savepoint_directory`. The job goes on."""
        return self._savepoint(savepoint_directory, stop=False, drain=False)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """End the job with a savepoint; with `advance_to_end_of_event_time` all timers and windows fire first.

        The future is done when the job has ended. It fails if the job did not finish, and names the savepoint if there
        is one.
        """
        stopped: CompletableFuture[str] = CompletableFuture()

        def written(path: CompletableFuture[str]) -> None:
            error = path.exception()
            if error is not None:
                stopped.set_exception(error)
            else:
                self._result.add_done_callback(lambda job: ended(path.result(), job.exception()))

        def ended(path: str, error: BaseException | None) -> None:
            if error is None:
                stopped.set_result(path)
            else:
                stopped.set_exception(HeadwaterError(f"the savepoint is in {path}, but then the job failed: {error}"))

        self.ask_to_stop(advance_to_end_of_event_time, savepoint_directory).add_done_callback(written)
        return stopped

    def ask_to_stop(self, drain: bool, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """As `stop_with_savepoint`, but the future is done as soon as the savepoint is there, before the job ends."""
        return self._savepoint(savepoint_directory, stop=True, drain=drain)

    def trigger_checkpoint(self) -> CompletableFuture[int]:
        """Complete a checkpoint now. The future's result is its epoch."""
        request = CheckpointRequest()
        self._running_coordinator("a checkpoint").ask(request)
        return _as_completable(request.done)

    def replay_dead_letters(self, directory: str, ids: list[str] | None = None) -> CompletableFuture[dict[str, Any]]:
        """Put the dead letters in the files below `directory` through again: those with these ids, or all that wait.

        The future is done when that is committed. Its result is {"done": ids, "refused_again": {id: the id of the new
        letter}, "not_possible": {id: why}}.
        """
        request = ReplayRequest(directory, ids)
        self._running_coordinator("a replay of dead letters").ask(request)
        return _as_completable(request.done)

    def rescale(self, parallelism: int) -> CompletableFuture[float]:
        """Change the parallelism between two epochs. The future's result is how many seconds the job stood still.

        Operators whose parallelism the program sets keep it. 0: nothing had to change.
        """
        coordinator = self._running_coordinator("rescale()")
        if self._replan is None:
            raise HeadwaterError("rescale() needs a job that was started by a StreamExecutionEnvironment")
        if not isinstance(parallelism, int) or not 1 <= parallelism <= self._plan.max_parallelism:
            raise ConfigurationError(
                f"rescale() to {short_repr(parallelism)}; expected a parallelism from 1 to the max parallelism, "
                f"{self._plan.max_parallelism}"
            )
        request = RescaleRequest(parallelism, self._replan(parallelism))
        coordinator.ask(request)
        return _as_completable(request.done)

    def _savepoint(self, directory: str | None, *, stop: bool, drain: bool) -> CompletableFuture[str]:
        coordinator = self._running_coordinator("a savepoint")
        chosen = directory or self._savepoint_directory
        if not chosen:
            raise ConfigurationError(
                "no directory was given for the savepoint; pass one, or set execution.checkpointing.savepoint-dir"
            )
        name = f"savepoint-{str(self._job_id)[:6]}-{secrets.token_hex(6)}"
        target = f"{chosen.rstrip('/')}/{name}"
        where = StorageSpec(target, self._storage_options) if is_remote(target) else target
        request = SavepointRequest(where, stop=stop, drain=drain)
        coordinator.ask(request)
        return _as_completable(request.path)

    def _running_coordinator(self, what: str) -> Coordinator:
        coordinator = self._coordinator
        if coordinator is None or self._result.done():
            state = "has ended" if self._result.done() else "does not run yet"
            raise HeadwaterError(f"{what} needs a running job; this one {state}")
        if not coordinator.has_checkpoints:
            raise HeadwaterError(
                f"{what} needs checkpoints; this job has none (BATCH mode, or headwater.checkpointing.enabled is false)"
            )
        return coordinator

    def locate_state(self) -> dict[str, Any]:
        """Where the job's state is, for those who read it from its slots. Raises `QueryError`."""
        return self._readable().locate()

    def ask_slot(self, stage: int, partition: int, request: dict[str, Any]) -> dict[str, Any]:
        """Ask a slot in this process about its state. Raises `QueryError`."""
        return self._readable().ask(Place(stage, partition), request)

    def series(self) -> list[dict[str, Any]]:
        """The job's series, and where their archives are. Raises `QueryError`."""
        return self._readable().archives.describe()

    def read_archive(self, series: str, key: str, from_ms: int, to_ms: int, epoch: int) -> dict[str, Any]:
        """The archived windows of a series. Raises `QueryError`."""
        return self._readable().archives.read(series, key, from_ms, to_ms, epoch)

    def _readable(self) -> StateDirectory:
        directory = self.state_directory
        if directory is None:
            status = self._state.status.name
            raise QueryError(QueryProblem.RESTORING, f"the job is {status}: its state cannot be read now")
        return directory

    def checkpoints(self) -> list[dict[str, Any]]:
        """Statistics of the last checkpoints, oldest first: time, duration, sizes, per partition too."""
        history = list(self._coordinator.checkpoints.history) if self._coordinator is not None else []
        return [stats.as_dict() for stats in history]

    def describe(self) -> dict[str, Any]:
        """The job's graph, states with their times, parallelism and settings; secrets are hidden."""
        return description(self._plan, str(self._job_id), self._state.status, self._state.since_ms, self._settings)

    def exceptions(self) -> dict[str, Any]:
        """The last failures, newest first, each with its vertex, partition and host where they are known."""
        return with_tasks(self.exception_history.as_dict(), self._plan)

    def checkpoint(self, epoch: object) -> dict[str, Any]:
        """Statistics of one of the last checkpoints, by vertex and subtask."""
        history = list(self._coordinator.checkpoints.history) if self._coordinator is not None else []
        return checkpoint_details(history, epoch, self._plan)

    def metrics(self, since_ms: int = 0) -> dict[str, Any]:
        """All figures per vertex and subtask, the last ten minutes (what came after `since_ms`), and findings."""
        return {} if self._coordinator is None else metrics_of(self._coordinator, self._state.status, since_ms)

    def why(self) -> list[dict[str, Any]]:
        """Why there is no output, the most likely cause first; one that says so if nothing is wrong."""
        return why_of(self._coordinator, self._state.status)

    def progress(self) -> dict[str, Any]:
        """Epoch, records, rate, watermark, state entries, restarts and slots, as of the last completed epoch.

        And the last savepoint, as statistics of its checkpoint with its path, and what the job was last restored from.
        """
        if self._coordinator is None:
            return JobProgress().as_dict()
        made = self._coordinator.checkpoints.last_savepoint
        savepoint = None if made is None else made[0].as_dict() | {"path": made[1]}
        return self._coordinator.progress.as_dict() | {"last_savepoint": savepoint}
