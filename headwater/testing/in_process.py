"""Runs whole programs in this process, as they are: no Spark, no sockets, no other process, no waiting.

    with in_process(epoch_records=10) as here:
        here.crash_job(epoch=2)
        with pytest.raises(JobCrashed):
            my_program()
        my_program()
    assert_same_records(sink.results(), expected)

Everything else is what runs on Spark, too: the planner, the coordinator, checkpoints on disk, slots, sinks.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import quote

from headwater.checkpoint.storage.durable_file import no_power_cuts
from headwater.common.config.values import IN_PROCESS
from headwater.common.config_options import (
    CHECKPOINT_DIRECTORY,
    EPOCH_MAX_RECORDS,
    EPOCH_MIN_RECORDS,
    MASTER,
    STATE_DIRECTORY,
)
from headwater.common.configuration import Configuration
from headwater.common.errors import ConfigurationError
from headwater.common.job_client import JobClient
from headwater.datastream import executor
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch import fault as steps
from headwater.runtime.epoch.messages import EpochHeader
from headwater.runtime.local.engine import InProcessEngine
from headwater.runtime.local.job import InProcessJob, JobCrashed, Rehearsal
from headwater.testing.clock import ManualClock
from headwater.testing.faults import (
    AttemptFailure,
    Call,
    CommitFailure,
    Fault,
    JobCrash,
    SinkThatFails,
    SlotKill,
)

__all__ = ["InProcess", "JobCrashed", "in_process"]

_MEMORY = "/dev/shm"
_ROOM_BYTES = 1 << 30
"""Containers often have a small one: the checkpoints of a test must not fill it."""

F = TypeVar("F", bound=Fault)


@contextlib.contextmanager
def in_process(
    directory: str | os.PathLike[str] | None = None,
    *,
    epoch_records: int | None = None,
    checkpoint_epochs: int = 1,
    clock: ManualClock | None = None,
) -> Iterator[InProcess]:
    """Within the block, `execute()` and its sisters run jobs in this process.

    `directory` takes the place of the job's checkpoint directory. Without one, a job that crashed or was cancelled can
    go on as long as the block lasts, and a job that has finished leaves nothing behind.
    `epoch_records` is how many records an epoch reads, so that state spans many epochs (default: a thousand or more).
    Every `checkpoint_epochs`-th epoch ends with a checkpoint, whatever interval the program sets.
    `clock` is processing time (default: from now on). A job that would wait turns it instead: for its rate limit, for a
    timer, for a restart. So an hour takes no time.

    Raises AssertionError at the end of the block if a fault has not fired: then the test has tested nothing.
    """
    for name, value in (("epoch_records", epoch_records), ("checkpoint_epochs", checkpoint_epochs)):
        if value is not None and value < 1:
            raise ConfigurationError(f"in_process({name}={value}): expected 1 or more")
    scratch = tempfile.mkdtemp(prefix="headwater-in-process-", dir=_in_memory())
    here = InProcess(scratch, directory, epoch_records, checkpoint_epochs, clock)
    hook, before = steps.hook, executor.current()
    steps.hook = here._reached
    executor.set_executor(here)
    try:
        with no_power_cuts():
            yield here
            here._check_fired()
    finally:
        here._end()
        executor.set_executor(before)
        steps.hook = hook
        shutil.rmtree(scratch, ignore_errors=True)


def _in_memory() -> str | None:
    """A directory that is no disk, if this machine has one with room enough."""
    with contextlib.suppress(OSError):
        found = os.statvfs(_MEMORY)
        if os.access(_MEMORY, os.W_OK) and found.f_bavail * found.f_frsize >= _ROOM_BYTES:
            return _MEMORY
    return None


class InProcess:
    """The jobs of an `in_process` block, and the faults that strike them. Epochs count from 0.

    A fault strikes any job of the block that gets there, and once, unless it says `times`. Each method returns the
    fault: its `fired` says how often it has struck.
    """

    def __init__(
        self,
        scratch: str,
        directory: str | os.PathLike[str] | None,
        epoch_records: int | None,
        checkpoint_epochs: int,
        clock: ManualClock | None,
    ) -> None:
        self._scratch = scratch
        self._directory = directory
        self._epoch_records = epoch_records
        self.clock = clock if clock is not None else ManualClock(int(time.time() * 1000))
        self._rehearsal = Rehearsal(self.clock, checkpoint_epochs, directory is None, self._started)
        self._faults: list[Fault] = []
        self._running: dict[int, tuple[InProcessJob, InProcessEngine]] = {}  # by the thread of the job
        self.jobs: list[InProcessJob] = []
        """All jobs that were started in the block."""

    # --- faults

    def crash_job(self, *, epoch: int, at: str = "begin") -> Fault:
        """Kill the whole job, driver and slots, as `kill -9` does. `execute()` raises `JobCrashed`.

        At "begin", `epoch` epochs are complete. The other steps are in `headwater.testing.STEPS`.
        """
        return self._add(JobCrash(epoch, at))

    def kill_slot(self, operator: str, partition: int = 0, *, epoch: int, at: str = "processed") -> Fault:
        """Kill the slot of one partition of the operator with this name or uid. The job recovers by itself."""
        return self._add(SlotKill(operator, partition, epoch, at))

    def fail_attempt(self, *, epoch: int, at: str = "acked", times: int = 1) -> Fault:
        """Let the first `times` attempts at an epoch fail, as if a worker had died. The job tries again."""
        return self._add(AttemptFailure(epoch, at, times))

    def fail_commit(self, sink: str | None = None, *, times: int = 1) -> Fault:
        """Let the next `times` commits of the sink with this name or uid (default: of any sink) raise."""
        return self._add(CommitFailure(sink, times))

    def call(self, action: Callable[[JobClient], Any], *, epoch: int, at: str = "begin") -> Fault:
        """Call `action(job)` at a step of an epoch, to ask for a savepoint or a rescale, say.

        It runs in the job's thread: do not wait there for what you ask for.
        """
        return self._add(Call(action, epoch, at))

    # --- running (`datastream.executor.Executor`)

    def launch(self, plan: JobPlan, configuration: Configuration, replan: Callable[[int], JobPlan]) -> JobClient:
        """Start a job. `execute()` calls this."""
        configuration = self._configured(plan, configuration)
        job = InProcessJob(
            self._with_faults(plan), configuration, lambda n: self._with_faults(replan(n)), self._rehearsal
        )
        job.prepare()
        self.jobs.append(job)
        job.start()
        return job.client

    def _configured(self, plan: JobPlan, configuration: Configuration) -> Configuration:
        configuration = Configuration(configuration)
        configuration.set(MASTER, IN_PROCESS)
        configuration.set(STATE_DIRECTORY, os.path.join(self._scratch, "state"))
        own = os.path.join(self._scratch, "jobs", quote(plan.name, safe=""))
        configuration.set(CHECKPOINT_DIRECTORY, os.fspath(self._directory) if self._directory is not None else own)
        if self._epoch_records is not None:
            configuration.set(EPOCH_MIN_RECORDS, self._epoch_records)
            configuration.set(EPOCH_MAX_RECORDS, self._epoch_records)
        return configuration

    def _with_faults(self, plan: JobPlan) -> JobPlan:
        """The plan, with sinks that fail where a fault says so."""
        stages = tuple(
            replace(
                stage,
                operators=tuple(
                    replace(spec, sink=SinkThatFails(spec.sink, failures))
                    if spec.sink is not None and (failures := self._commit_failures(spec.uid, spec.name))
                    else spec
                    for spec in stage.operators
                ),
            )
            for stage in plan.stages
        )
        return replace(plan, stages=stages)

    def _commit_failures(self, *names: str) -> list[CommitFailure]:
        faults = (fault for fault in self._faults if isinstance(fault, CommitFailure))
        return [fault for fault in faults if fault.sink is None or fault.sink in names]

    def _started(self, job: InProcessJob, engine: InProcessEngine) -> None:
        def reached(step: str, header: EpochHeader) -> None:
            self._reached(step, header.attempt.epoch)

        self._running[threading.get_ident()] = job, engine
        engine.before = lambda header: reached("begin", header)
        engine.after_stages = lambda header: reached("acked", header)

    def _reached(self, step: str, epoch: int) -> None:
        running = self._running.get(threading.get_ident())
        if running is not None:
            for fault in self._faults:
                fault.reached(step, epoch, *running)

    # --- the end

    def _add(self, fault: F) -> F:
        self._faults.append(fault)
        return fault

    def _check_fired(self) -> None:
        missing = [fault for fault in self._faults if fault.fired < fault.times]
        if missing:
            last = max((job.client.progress()["epoch"] for job in self.jobs), default=0)
            raise AssertionError(
                f"these did not happen: {missing}; the longest job had {last} epochs. Give it more input, or fewer "
                "records per epoch (epoch_records)"
            )

    def _end(self) -> None:
        """Cancel what still runs."""
        for job in self.jobs:
            job.client.cancel().result()
