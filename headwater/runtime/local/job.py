"""A job whose engine is this process: everything that the launcher does, except Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.common.config_options import EPOCH_DURATION, PYTHON_FILES
from headwater.common.configuration import Configuration
from headwater.common.errors import JobFailedError, PlanError
from headwater.common.job_execution_result import JobExecutionResult
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.checkpoint_schedule import CheckpointSchedule, CheckpointSettings
from headwater.runtime.epoch.engine import Engine
from headwater.runtime.epoch.engine_choice import EngineChoice
from headwater.runtime.epoch.restart_policy import RestartPolicy
from headwater.runtime.job.control import ControlServer
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.launcher import Job, Replan
from headwater.runtime.job.processing_clock import ProcessingClock
from headwater.runtime.job.progress import JobProgress
from headwater.runtime.job.state_directory import StateAccess
from headwater.runtime.local.engine import InProcessEngine, TurnedClock
from headwater.runtime.local.inline import INLINE
from headwater.runtime.local.killed import Killed
from headwater.runtime.python_path import make_importable


class JobCrashed(JobFailedError):
    """The whole job was killed, as a test asked. Its checkpoint directory is as the kill left it."""


@dataclass(frozen=True)
class Rehearsal:
    """What a test puts around the jobs that it runs."""

    clock: TurnedClock
    checkpoint_epochs: int
    """Every so many epochs end with a checkpoint."""
    forgets: bool
    """A job that has finished leaves no checkpoint behind."""
    started: Callable[[InProcessJob, InProcessEngine], None]
    """Called with each engine, before its first epoch."""


class InProcessJob(Job):
    """One run of one job in this process.

    Without a `rehearsal` it is a job as on Spark: its time is real, and the command line can operate it.
    """

    background = INLINE

    def __init__(
        self, plan: JobPlan, configuration: Configuration, replan: Replan | None, rehearsal: Rehearsal | None = None
    ) -> None:
        super().__init__(plan, configuration, replan)
        self._rehearsal = rehearsal

    @property
    def plan(self) -> JobPlan:
        return self._plan

    def _check_engine(self) -> None:
        for source in self._plan.sources:
            if hasattr(source.source, "dataframe"):
                raise PlanError(
                    f"source '{source.name}' is a Spark DataFrame (from_dataframe), and the job runs in process, "
                    "without Spark; put from_collection(...) with a few rows in its place, or run the job on Spark"
                )

    def _open_control(self) -> ControlServer | None:
        return super()._open_control() if self._rehearsal is None else None

    def _connect(self) -> Any:
        files: list[str] | None = self._configuration.get(PYTHON_FILES)
        make_importable(files or ())
        return "this process"

    def _started(self) -> None: ...

    _spark_session = None

    def _run(self) -> JobExecutionResult:
        try:
            return super()._run()
        except Killed as killed:
            raise JobCrashed(str(killed)) from None

    def _engine_choice(self) -> EngineChoice:
        return EngineChoice(self._sizer(self._configuration.get(EPOCH_DURATION)))

    def _new_engine(self, context: Any) -> Engine:
        clock = self._rehearsal.clock if self._rehearsal is not None else None
        engine = InProcessEngine(self._plan, self._start.layout, INLINE, self._start.job_id, clock)
        self._state_access = StateAccess(session=engine.session)
        if self._rehearsal is not None:
            self._rehearsal.started(self, engine)
        return engine

    def _new_coordinator(self, context: Any, progress: JobProgress) -> tuple[Coordinator, Engine]:
        coordinator, engine = super()._new_coordinator(context, progress)
        rehearsal = self._rehearsal
        if rehearsal is not None:
            clock = rehearsal.clock
            coordinator.clock = ProcessingClock(lambda: clock.now_ms, lambda: clock.now_ms)
            coordinator.checkpoints.schedule = _EveryEpochs(
                rehearsal.checkpoint_epochs, lambda: coordinator.epoch + 1, self._checkpoint_settings()
            )
        return coordinator, engine

    def _checkpoint_settings(self) -> CheckpointSettings:
        settings = super()._checkpoint_settings()
        if self._rehearsal is None:
            return settings
        interval_ms = 0 if self._rehearsal.checkpoint_epochs == 1 else 1
        return CheckpointSettings(interval_ms, 0, settings.timeout_ms, settings.tolerable_failures)

    def _restart_policy(self) -> RestartPolicy:
        policy = super()._restart_policy()
        return policy if self._rehearsal is None else _TurnsClock(policy, self._rehearsal.clock)

    def _clean_up(self, error: BaseException | None) -> None:
        if isinstance(error, JobCrashed):
            # As the kernel does for a process that was killed: it takes the lock and the connections. Nothing else
            # happens in this `close`, because background work is done at once here.
            self._requests.close()
            if self._coordinator is not None:
                self._coordinator.close()
            self._start.release()
            return
        super()._clean_up(error)
        finished = error is None and self._coordinator is not None and self._coordinator.finished
        if finished and self._start.layout is not None and self._rehearsal is not None and self._rehearsal.forgets:
            shutil.rmtree(str(self._start.layout.root), ignore_errors=True)


class _EveryEpochs(CheckpointSchedule):
    """Counts epochs, where the job's own schedule looks at a clock."""

    def __init__(self, epochs: int, next_epoch: Callable[[], int], settings: CheckpointSettings) -> None:
        super().__init__(settings)
        self._epochs = epochs
        self._next_epoch = next_epoch

    def due(self, now_ms: float) -> bool:
        return not self._in_flight and (self._next_epoch() + 1) % self._epochs == 0


class _TurnsClock(RestartPolicy):
    """Waits as another policy says, by turning the clock."""

    def __init__(self, policy: RestartPolicy, clock: TurnedClock) -> None:
        self._policy = policy
        self._clock = clock
        self.forgets_on_success = policy.forgets_on_success  # type: ignore[misc]

    def next_delay_ms(self, failures: Sequence[int], now_ms: int) -> int | None:
        delay_ms = self._policy.next_delay_ms(failures, now_ms)
        if delay_ms is None:
            return None
        self._clock.advance(delay_ms)
        return 0
