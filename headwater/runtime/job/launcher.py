"""From a plan to a running job: directory, lock, decision, Spark, slots, thread."""

from __future__ import annotations

import atexit
import contextlib
import logging
import secrets
import shutil
import sys
import threading
import uuid
from collections.abc import Callable
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import cloudpickle
import msgspec

from headwater.checkpoint.savepoint.claimed import ClaimedSavepoint
from headwater.checkpoint.savepoint.unfinished import remove_unfinished
from headwater.checkpoint.start.decision import AlreadyFinished, Resume
from headwater.common.config.sensitive_keys import shown_settings
from headwater.common.config.values import IN_PROCESS
from headwater.common.config_options import (
    CHECKPOINT_RETENTION,
    CHECKPOINTING_INTERVAL,
    CHECKPOINTING_MIN_PAUSE,
    CHECKPOINTING_TIMEOUT,
    CHECKPOINTS_RETAINED,
    EPOCH_DURATION,
    EPOCH_ENGINE,
    EPOCH_MAX_RECORDS,
    EPOCH_MIN_RECORDS,
    JOB_TOKEN,
    LOG_LEVEL,
    MASTER,
    PYTHON_FILES,
    PYTHON_REQUIREMENTS,
    REST_ENABLED,
    SAVEPOINT_DIRECTORY,
    SLOT_HEALTH,
    STATE_DIRECTORY,
    STORAGE_OPTIONS,
    TOLERABLE_FAILED_CHECKPOINTS,
)
from headwater.common.configuration import Configuration
from headwater.common.errors import HeadwaterError
from headwater.common.ids import Epoch
from headwater.common.job_client import JobClient
from headwater.common.job_execution_result import JobExecutionResult
from headwater.common.job_id import JobID
from headwater.common.job_status import JobStatus
from headwater.graph.plan import JobPlan
from headwater.runtime.background import THREADS, Background
from headwater.runtime.epoch.checkpoint_schedule import CheckpointSettings
from headwater.runtime.epoch.decisions import POLL_MS, Pace
from headwater.runtime.epoch.engine import Engine, NothingToRun
from headwater.runtime.epoch.engine_choice import RESIDENT_MS, EngineChoice, EngineSetting
from headwater.runtime.epoch.restart_policy import RestartPolicy, restart_policy
from headwater.runtime.epoch.sizing import EpochSizer
from headwater.runtime.job.control import ControlServer, open_control
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.dataframe_progress import is_streaming_dataframe
from headwater.runtime.job.endings import JobCancelledError, RescaleAsked, StoppedWithSavepoint
from headwater.runtime.job.handle import LocalJobClient, end_of
from headwater.runtime.job.loop import run_epochs
from headwater.runtime.job.progress import JobProgress, LastRestore
from headwater.runtime.job.requests import RequestQueue
from headwater.runtime.job.requirements import check_requirements
from headwater.runtime.job.start import JobStart, prepare_start
from headwater.runtime.job.state_directory import StateAccess, StateDirectory
from headwater.runtime.main_module import capture_main
from headwater.runtime.slot.connection import shut_down
from headwater.runtime.slot.directories import query_directory, socket_directory
from headwater.runtime.slot.starter import SlotLaunch, slots_on_this_host

if TYPE_CHECKING:
    from headwater.runtime.spark.session import SparkSettings

log = logging.getLogger(__name__)


Replan = Callable[[int], JobPlan]
"""Plans the same program with another parallelism, for operators that set none."""


def launch(plan: JobPlan, configuration: Configuration, replan: Replan | None = None) -> JobClient:
    """Start `plan` in a thread of this process and return its handle.

    Raises if something is wrong with the directory or the machine, before Spark starts.
    """
    kind = Job
    if configuration.get(MASTER) == IN_PROCESS:
        from headwater.runtime.local.job import InProcessJob as kind
    job = kind(plan, configuration, replan)
    job.prepare()
    job.start()
    for tell in on_launch:
        tell(job.client, configuration)
    if not on_launch and configuration.get(REST_ENABLED):
        resolve_name(_SERVE)(job.client, configuration)
    return job.client


_SERVE = "headwater.server.job_dashboard:serve_job"
"""By name, and loaded when it is wanted: the server is a layer above."""
on_launch: list[Callable[[LocalJobClient, Configuration], None]] = []
"""Called with each job that starts in this process: `headwater run` serves it to browsers."""


class Job:
    """One run of one job, from its directory to its last slot. On Spark; `runtime/local` runs it in this process."""

    background: Background = THREADS

    def __init__(self, plan: JobPlan, configuration: Configuration, replan: Replan | None) -> None:
        self._plan = plan
        self._configuration = configuration
        self._replan = replan
        self._start: JobStart
        self._coordinator: Coordinator | None = None
        self._launch: SlotLaunch | None = None
        self._state_access = StateAccess()
        self._requests = RequestQueue()
        """One for all coordinators: what is asked while a rescale is under way, the next one serves."""
        self._control: ControlServer | None = None
        self.client: LocalJobClient

    # --- in the caller's thread

    def prepare(self) -> None:
        """Take the checkpoint directory and decide where to start."""
        configuration = self._configuration
        logging.getLogger("headwater").setLevel(python_log_level(configuration.get(LOG_LEVEL)))
        self._pickled_plan = cloudpickle.dumps(self._plan)  # fail now if it cannot be sent to the slots
        requirements = configuration.get(PYTHON_REQUIREMENTS)
        if requirements:
            check_requirements(requirements)
        self._check_engine()
        self._start = prepare_start(self._plan, configuration)
        self.client = LocalJobClient(
            self._start.job_id,
            self._plan,
            configuration.get(SAVEPOINT_DIRECTORY),
            self._replan,
            configuration.get(STORAGE_OPTIONS, {}),
            shown_settings(configuration),
        )

    def _check_engine(self) -> None:
        """Warn of, or refuse, what the engine cannot do for this job."""
        if "pyspark" in sys.modules:
            from headwater.runtime.spark.session import warn_if_running

            warn_if_running(self._spark_settings())

    def start(self) -> None:
        self._thread = threading.Thread(target=self._main, name=f"job-{self._plan.name}", daemon=True)
        _running.append(self)
        self._control = self._open_control()
        self._thread.start()

    def _open_control(self) -> ControlServer | None:
        layout = self._start.layout
        return open_control(
            self._configuration.get(STATE_DIRECTORY),
            self.client,
            self._start.job_id,
            self._plan.name,
            str(layout.root) if layout is not None else "",
            parallelism=lambda: max(stage.parallelism for stage in self._plan.stages),
            token=self._configuration.get(JOB_TOKEN),
        )

    # --- in the job's thread

    def _main(self) -> None:
        result: JobExecutionResult | None = None
        error: BaseException | None = None
        try:
            result = self._run()
        except BaseException as problem:
            error = problem
        finally:
            self._clean_up(error)
            self.client.ending(error)
            if self._control is not None:
                status = end_of(error)
                self._control.close(status, str(error) if status is JobStatus.FAILED else "")
            if self in _running:
                _running.remove(self)
            self.client.ended(result, error)

    def _run(self) -> JobExecutionResult:
        finished = isinstance(self._start.decision, AlreadyFinished)
        coordinator = self._run_plans(None if finished else self._connect())
        first, last = coordinator.first_epoch_started, coordinator.last_commit
        runtime_ms = int((last - first) * 1000) if first is not None and last is not None else 0
        return JobExecutionResult(JobID(self._start.job_id), runtime_ms, coordinator.progress.accumulators())

    def _connect(self) -> Any:
        """What `_new_engine` needs: the Spark context, with the job's files."""
        from headwater.runtime.spark.python_files import ship
        from headwater.runtime.spark.session import spark_context

        context = spark_context(self._spark_settings())
        files: list[str] | None = self._configuration.get(PYTHON_FILES)
        ship(context, files or ())
        return context

    @property
    def _spark_session(self) -> Callable[[], Any] | None:
        """What returns a Spark session for sinks that need one; None: the job runs without Spark."""

        def session() -> Any:
            from headwater.runtime.spark.session import spark_session

            return spark_session(self._spark_settings())

        return session

    def _spark_settings(self) -> SparkSettings:
        from headwater.runtime.spark.settings import settings_of

        return settings_of(self._configuration, self._plan.name)

    def _run_plans(self, context: Any) -> Coordinator:
        """Run the job's plan to the end; after each rescale, run the new plan."""
        progress = JobProgress(exceptions=self.client.exception_history)
        rescaled: RescaleAsked | None = None
        while True:
            try:
                return self._run_plan(context, progress, rescaled)
            except RescaleAsked as asked:
                rescaled = asked
                self._take_plan(asked)
            except BaseException as error:
                if rescaled is not None and not rescaled.request.done.done():
                    rescaled.request.done.set_exception(HeadwaterError(f"the job did not go on: {error}"))
                raise

    def _run_plan(self, context: Any, progress: JobProgress, rescaled: RescaleAsked | None) -> Coordinator:
        """Run the plan to its end. Raises `RescaleAsked` if another plan must follow."""
        coordinator, engine = self._new_coordinator(context, progress)
        self._coordinator = coordinator
        try:
            self._resume(coordinator)
            coordinator.clean_up()
            self.client.running(coordinator)
            self.client.state_directory = StateDirectory(coordinator, self._state_access)
            if rescaled is not None:
                coordinator.on_first_epoch = rescaled.goes_on
            elif context is not None:
                coordinator.on_first_epoch = self._started
                coordinator.checkpoints.on_state_loaded.append(self._remove_unfinished_savepoints)
            if not coordinator.finished:
                with contextlib.suppress(StoppedWithSavepoint):
                    self._drive(coordinator)
                coordinator.clean_up()
        finally:
            self.client.forget_state()
            engine.close()
        return coordinator

    def _started(self) -> None:
        """The first epoch is over: what makes the next start faster may be done now."""
        from headwater.runtime.spark.session import start_is_over

        start_is_over()

    def _new_coordinator(self, context: Any, progress: JobProgress) -> tuple[Coordinator, Engine]:
        """For the present plan, with slots of its own. Without a context there is nothing to run."""
        configuration, start = self._configuration, self._start
        engine = NothingToRun() if isinstance(start.decision, AlreadyFinished) else self._new_engine(context)
        coordinator = Coordinator(
            self._plan,
            start.job_id,
            engine,
            start.store,
            self._restart_policy(),
            self._engine_choice(),
            configuration.get(CHECKPOINTS_RETAINED),
            self._checkpoint_settings(),
            progress,
            self.background,
            self._spark_session,
            self._requests,
        )
        return coordinator, engine

    def _restart_policy(self) -> RestartPolicy:
        return restart_policy(self._configuration)

    def _new_engine(self, context: Any) -> Engine:
        from headwater.runtime.spark.engines import SparkEngines
        from headwater.runtime.spark.session import is_local

        configuration, start = self._configuration, self._start
        self._launch = SlotLaunch(
            job_id=start.job_id,
            run_id=uuid.uuid4().hex,
            secret=secrets.token_bytes(32),
            plan=self._pickled_plan,
            parallelisms=tuple(stage.parallelism for stage in self._plan.stages),
            main_classes=capture_main(),
            layout=start.layout,
            listen_tcp=not is_local(str(context.master)),
            log_level=python_log_level(configuration.get(LOG_LEVEL)),
            health_seconds=configuration.get(SLOT_HEALTH) / 1000,
            checkpoint_seconds=configuration.get(CHECKPOINTING_TIMEOUT) / 1000,
        )
        self._state_access = StateAccess(self._launch.secret)
        return SparkEngines(context, self._plan, self._launch)

    def _engine_choice(self) -> EngineChoice:
        resident = self._sizer(min(self._configuration.get(EPOCH_DURATION), RESIDENT_MS))
        setting = EngineSetting(self._configuration.get(EPOCH_ENGINE))
        if self._plan.batch_mode and setting is EngineSetting.AUTO:
            setting = EngineSetting.SHUFFLE  # bounded input is volume
        if any(is_streaming_dataframe(source) for source in self._plan.sources):
            setting = EngineSetting.SHUFFLE  # Spark calls for each epoch, with a job of its own
        return EngineChoice(self._sizer(self._configuration.get(EPOCH_DURATION)), resident, setting)

    def _sizer(self, target_ms: int) -> EpochSizer:
        configuration = self._configuration
        return EpochSizer(target_ms, configuration.get(EPOCH_MIN_RECORDS), configuration.get(EPOCH_MAX_RECORDS))

    def _take_plan(self, asked: RescaleAsked) -> None:
        """Switch to the requested plan, starting from the checkpoint that was just made."""
        assert self._coordinator is not None and asked.request.plan is not None
        manifest = self._coordinator.checkpoints.durable
        assert manifest is not None
        self._plan = asked.request.plan
        self._pickled_plan = cloudpickle.dumps(self._plan)
        self._start.savepoint = None
        self._start.decision = Resume(
            manifest, Epoch(manifest.epoch + 1), manifest.incarnation + 1, manifest.committables, reshaped=True
        )
        self._end_slots()
        self._coordinator.close()

    def _checkpoint_settings(self) -> CheckpointSettings:
        configuration = self._configuration
        interval_ms = configuration.get(CHECKPOINTING_INTERVAL) or 0
        return CheckpointSettings(
            # An interval shorter than an epoch means: every epoch.
            interval_ms=interval_ms if interval_ms > configuration.get(EPOCH_DURATION) else 0,
            min_pause_ms=configuration.get(CHECKPOINTING_MIN_PAUSE),
            timeout_ms=configuration.get(CHECKPOINTING_TIMEOUT),
            tolerable_failures=configuration.get(TOLERABLE_FAILED_CHECKPOINTS),
        )

    def _resume(self, coordinator: Coordinator) -> None:
        start = self._start
        decision = start.decision
        if isinstance(decision, AlreadyFinished):
            log.warning(
                "job '%s' finished in an earlier run (epoch %d in %s); nothing to do. Use a fresh "
                "execution.checkpointing.dir to run it again",
                self._plan.name, decision.manifest.epoch, start.layout.root if start.layout else "",
            )  # fmt: skip
            coordinator.resume(decision.manifest, decision.manifest.incarnation + 1, decision.recommit)
        elif isinstance(decision, Resume):
            if decision.dropped:
                log.warning("the state of %s is dropped, as the settings allow", ", ".join(decision.dropped))
            log.info("job '%s' resumes after epoch %d", self._plan.name, decision.manifest.epoch)
            restores = start.restores(self._plan)
            epoch, given = decision.manifest.epoch, decision.savepoint
            own = f"{start.layout.root}@{epoch}" if start.layout is not None else ""
            coordinator.progress.last_restore = LastRestore(
                epoch, own if given is None else given.path, given is not None and given.is_savepoint
            )
            # The checkpoint of a finished job may be resumed with more input. Without any, the job just ends again.
            manifest = msgspec.structs.replace(decision.manifest, finished=False)
            coordinator.resume(manifest, decision.incarnation, decision.recommit, restores)
            if start.outlived is not None:
                coordinator.checkpoints.on_durable.append(ClaimedSavepoint(start.outlived))
                start.outlived = None
            if decision.dispose_savepoint:
                assert start.savepoint is not None
                coordinator.checkpoints.on_durable.append(ClaimedSavepoint(start.savepoint.directory))

    def _remove_unfinished_savepoints(self) -> None:
        """Those that drivers before this one were writing when they were killed."""
        if self._start.layout is not None:
            options: dict[str, str] = self._configuration.get(STORAGE_OPTIONS, {})
            remove_unfinished(self._start.layout, options)

    def _drive(self, coordinator: Coordinator) -> None:
        epoch_ms = self._configuration.get(EPOCH_DURATION)
        pace = Pace(epoch_ms, min(POLL_MS, epoch_ms), epoch_ms if self._plan.needs_ticks else None)
        if coordinator.sources.streaming:
            from headwater.runtime.spark.streaming import StreamingQueryDriver

            StreamingQueryDriver(coordinator, pace).run(self._start.layout)
        else:
            run_epochs(coordinator, pace)

    def _end_slots(self) -> None:
        """Tell all slots of the plan under way that they are not needed any more."""
        if self._launch is None:
            return
        assert self._coordinator is not None
        # Slots of attempts that failed are not in the coordinator's book.
        slots = {slot.path: slot for slot in slots_on_this_host(self._launch.run_id)}
        slots |= {slot.path: slot for slot in self._coordinator.slots()}
        for address in slots.values():
            shut_down(address, self._launch.secret)
        for directory in (socket_directory(self._launch.run_id), query_directory(self._launch.run_id)):
            shutil.rmtree(directory, ignore_errors=True)

    def _clean_up(self, error: BaseException | None) -> None:
        """Give back all that the run holds. Raises nothing: the caller waits for what `_main` does after it."""
        start = self._start
        steps: list[tuple[str, Callable[[], object]]] = [("refusing requests", self._requests.close)]
        if self._coordinator is not None:
            steps += [("ending the slots", self._end_slots), ("closing the sinks", self._coordinator.close)]
        if start.temporary is not None:
            steps.append(("removing its directory", partial(shutil.rmtree, start.temporary, ignore_errors=True)))
        elif isinstance(error, JobCancelledError) and start.store is not None and not self._retains():
            steps.append(("deleting the cancelled job's checkpoints", start.store.delete_checkpoints))
        steps.append(("releasing the checkpoint directory", start.release))
        for step, do in steps:
            try:
                do()
            except Exception:
                log.warning("job '%s' has ended, but %s failed", self._plan.name, step, exc_info=True)

    def _retains(self) -> bool:
        return self._configuration.get(CHECKPOINT_RETENTION) == "RETAIN_ON_CANCELLATION"

    def stop(self) -> None:
        """Cancel the job and wait for it. Called at the end of the process, so that no slots stay behind."""
        if self._coordinator is not None:
            self._coordinator.cancel()
            self._thread.join(timeout=10)


_running: list[Job] = []


def _stop_all() -> None:
    for job in list(_running):
        job.stop()


atexit.register(_stop_all)


def python_log_level(name: str) -> str:
    """Return Python's name of a headwater log level."""
    return {"WARN": "WARNING", "OFF": "CRITICAL"}.get(name, name)
