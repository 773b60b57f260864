"""From a plan to a running job: directory, lock, decision, Spark, slots, thread."""

from __future__ import annotations

import atexit
import logging
import secrets
import shutil
import threading
import uuid
from pathlib import Path

import cloudpickle

from headwater.checkpoint.directory_lock import DirectoryLock
from headwater.checkpoint.epoch_sizing import EpochSizer
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.protocol import AlreadyFinished, Refuse, RequestedJob, Resume, StartDecision, decide_start
from headwater.checkpoint.restart_policy import restart_policy
from headwater.checkpoint.schedule import CheckpointSettings
from headwater.checkpoint.store import ManifestStore
from headwater.common.config_options import (
    CHECKPOINT_DIRECTORY,
    CHECKPOINTING_ENABLED,
    CHECKPOINTING_INTERVAL,
    CHECKPOINTING_MIN_PAUSE,
    CHECKPOINTING_TIMEOUT,
    CHECKPOINTS_RETAINED,
    DRIVER_MEMORY,
    EPOCH_DURATION,
    EPOCH_MAX_RECORDS,
    EPOCH_MIN_RECORDS,
    LOG_LEVEL,
    MASTER,
    OPTIONS,
    PYTHON_FILES,
    PYTHON_REQUIREMENTS,
    SLOT_HEALTH,
    STATE_DIRECTORY,
    TOLERABLE_FAILED_CHECKPOINTS,
    spark_settings,
)
from headwater.common.configuration import Configuration
from headwater.common.errors import CheckpointError
from headwater.common.job_client import JobClient
from headwater.common.job_execution_result import JobExecutionResult
from headwater.common.job_id import JobID
from headwater.graph.plan import JobPlan
from headwater.runtime.job.client import LocalJobClient
from headwater.runtime.job.coordinator import Coordinator, JobCancelledError
from headwater.runtime.job.fingerprint import plan_fingerprint, stateful_operators
from headwater.runtime.job.loop import run_epochs
from headwater.runtime.job.requirements import check_requirements
from headwater.runtime.main_module import capture_main
from headwater.runtime.slot.client import shut_down
from headwater.runtime.slot.launcher import SlotLaunch, slots_on_this_host, socket_directory

log = logging.getLogger(__name__)


def launch(plan: JobPlan, configuration: Configuration) -> JobClient:
    """Start `plan` in a thread of this process and return its handle.

    What can be wrong with the directory or the machine is raised here, before Spark starts.
    """
    job = _Job(plan, configuration)
    job.prepare()
    job.start()
    return job.client


class _Job:
    """One run of one job, from its directory to its last slot."""

    def __init__(self, plan: JobPlan, configuration: Configuration) -> None:
        self._plan = plan
        self._configuration = configuration
        self._layout: CheckpointLayout | None = None
        self._lock: DirectoryLock | None = None
        self._decision: StartDecision | None = None
        self._temporary: Path | None = None
        self._coordinator: Coordinator | None = None
        self._launch: SlotLaunch | None = None
        self._job_id = uuid.uuid4().hex
        self.client: LocalJobClient

    # --- in the caller's thread

    def prepare(self) -> None:
        """Take the checkpoint directory and decide where to start."""
        logging.getLogger("headwater").setLevel(python_log_level(self._configuration.get(LOG_LEVEL)))
        self._plan_bytes = cloudpickle.dumps(self._plan)
        requirements = self._configuration.get(PYTHON_REQUIREMENTS)
        if requirements:
            check_requirements(requirements)
        if self._configuration.get(CHECKPOINTING_ENABLED) and not self._plan.batch_mode:
            self._layout = CheckpointLayout(self._directory())
            self._lock = DirectoryLock(self._layout, self._plan.name)
            self._lock.acquire()
            try:
                store = ManifestStore(self._layout)
                latest = store.latest()
                self._decision = decide_start(latest, self._requested())
                if isinstance(self._decision, Refuse):
                    raise CheckpointError(self._decision.reason)
                store.remove_orphans()
                if latest is not None:
                    self._job_id = latest.job_id
            except BaseException:
                self._lock.release()
                raise
        self.client = LocalJobClient(self._job_id)

    def _directory(self) -> Path:
        """The directory that was asked for, or one of its own for this run, removed when the job has finished."""
        given = self._configuration.get(CHECKPOINT_DIRECTORY)
        if given:
            return Path(given.removeprefix("file://")).expanduser().absolute()
        self._temporary = Path(self._configuration.get(STATE_DIRECTORY)).expanduser() / "jobs" / self._job_id
        return self._temporary

    def _requested(self) -> RequestedJob:
        sinks = [o.uid for stage in self._plan.stages for o in stage.operators if o.sink is not None]
        return RequestedJob(
            job_name=self._plan.name,
            plan_fingerprint=plan_fingerprint(self._plan),
            max_parallelism=self._plan.max_parallelism,
            operators=stateful_operators(self._plan),
            sources=frozenset(source.uid for source in self._plan.sources),
            sinks=frozenset(sinks),
        )

    def start(self) -> None:
        self._thread = threading.Thread(target=self._main, name=f"job-{self._plan.name}", daemon=True)
        _running.append(self)
        self._thread.start()

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
            if self in _running:
                _running.remove(self)
            self.client.ended(result, error)

    def _run(self) -> JobExecutionResult:
        from headwater.runtime.spark.epoch_job import SparkEngine
        from headwater.runtime.spark.python_files import ship
        from headwater.runtime.spark.session import SparkSettings, is_local, spark_context

        configuration = self._configuration
        context = spark_context(
            SparkSettings(
                master=configuration.get(MASTER),
                app_name=self._plan.name,
                driver_memory=_spark_memory(configuration.get(DRIVER_MEMORY)),
                log_level=configuration.get(LOG_LEVEL),
                confs=spark_settings(configuration),
            )
        )
        files: list[str] | None = configuration.get(PYTHON_FILES)
        ship(context, files or ())
        self._launch = SlotLaunch(
            job_id=self._job_id,
            run_id=uuid.uuid4().hex,
            secret=secrets.token_bytes(32),
            plan=self._plan_bytes,
            main_classes=capture_main(),
            checkpoint_dir=str(self._layout.root) if self._layout is not None else None,
            listen_tcp=not is_local(str(context.master)),
            log_level=python_log_level(configuration.get(LOG_LEVEL)),
            health_seconds=configuration.get(SLOT_HEALTH) / 1000,
        )
        engine = SparkEngine(context, self._plan, self._launch)
        coordinator = self._coordinator = Coordinator(
            self._plan,
            self._job_id,
            engine,
            self._layout,
            restart_policy({option.key: configuration.get(option) for option in OPTIONS}),
            EpochSizer(
                configuration.get(EPOCH_DURATION),
                configuration.get(EPOCH_MIN_RECORDS),
                configuration.get(EPOCH_MAX_RECORDS),
            ),
            configuration.get(CHECKPOINTS_RETAINED),
            self._checkpoint_settings(),
        )
        try:
            self._resume(coordinator)
            coordinator.clean_up()
            self.client.running(coordinator)
            if not coordinator.finished:
                self._drive(coordinator)
                coordinator.clean_up()
        finally:
            engine.close()
        first, last = coordinator.first_epoch_started, coordinator.last_commit
        runtime_ms = int((last - first) * 1000) if first is not None and last is not None else 0
        return JobExecutionResult(JobID(self._job_id), runtime_ms, coordinator.progress.accumulators())

    def _checkpoint_settings(self) -> CheckpointSettings:
        configuration = self._configuration
        interval_ms = configuration.get(CHECKPOINTING_INTERVAL) or 0
        return CheckpointSettings(
            # As often as epochs end, or more often: every epoch.
            interval_ms=interval_ms if interval_ms > configuration.get(EPOCH_DURATION) else 0,
            min_pause_ms=configuration.get(CHECKPOINTING_MIN_PAUSE),
            timeout_ms=configuration.get(CHECKPOINTING_TIMEOUT),
            tolerable_failures=configuration.get(TOLERABLE_FAILED_CHECKPOINTS),
        )

    def _resume(self, coordinator: Coordinator) -> None:
        decision = self._decision
        if isinstance(decision, AlreadyFinished):
            log.warning(
                "job '%s' finished in an earlier run (epoch %d in %s); nothing to do. Use a fresh "
                "execution.checkpointing.dir to run it again",
                self._plan.name, decision.manifest.epoch, self._layout.root if self._layout else "",
            )  # fmt: skip
            coordinator.resume(decision.manifest, decision.manifest.incarnation + 1)
        elif isinstance(decision, Resume):
            log.info("job '%s' resumes after epoch %d", self._plan.name, decision.manifest.epoch)
            coordinator.resume(decision.manifest, decision.incarnation)

    def _drive(self, coordinator: Coordinator) -> None:
        epoch_ms = self._configuration.get(EPOCH_DURATION)
        if any(source.streaming for source in coordinator.dataframes):
            from headwater.runtime.spark.streaming import StreamingQueryDriver

            StreamingQueryDriver(coordinator, ticks=self._plan.needs_ticks).run(self._layout, epoch_ms)
        else:
            run_epochs(coordinator, epoch_ms, ticks=self._plan.needs_ticks)

    def _clean_up(self, error: BaseException | None) -> None:
        if self._coordinator is not None:
            if self._launch is not None:
                # Slots of attempts that failed are not in the coordinator's book.
                slots = {slot.path: slot for slot in slots_on_this_host(self._launch.run_id)}
                slots |= {slot.path: slot for slot in self._coordinator.slots()}
                for address in slots.values():
                    shut_down(address, self._launch.secret)
                shutil.rmtree(socket_directory(self._launch.run_id), ignore_errors=True)
            try:
                self._coordinator.close()
            except Exception:
                log.warning("closing the sinks failed", exc_info=True)
        if self._lock is not None:
            self._lock.release()
        if self._temporary is not None and (error is None or isinstance(error, JobCancelledError)):
            shutil.rmtree(self._temporary, ignore_errors=True)

    def stop(self) -> None:
        """At the end of the process: do not leave slots behind."""
        if self._coordinator is not None:
            self._coordinator.cancel()
            self._thread.join(timeout=10)


_running: list[_Job] = []


def _stop_all() -> None:
    for job in list(_running):
        job.stop()


atexit.register(_stop_all)


def python_log_level(name: str) -> str:
    """Our levels by Python's names."""
    return {"WARN": "WARNING", "OFF": "CRITICAL"}.get(name, name)


def _spark_memory(number_of_bytes: int | None) -> str:
    """Bytes as Spark spells them. The JVM only moves chunks, so a gibibyte is enough unless somebody knows better."""
    return "1g" if number_of_bytes is None else f"{max(number_of_bytes >> 20, 1)}m"
