"""Runs a program's job on a copy of another job's state, with every sink diverted: its output never becomes visible."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from headwater.common.config_options import (
    CHECKPOINT_DIRECTORY,
    CHECKPOINT_RETENTION,
    CHECKPOINTING_ENABLED,
    CHECKPOINTING_INTERVAL,
    CHECKPOINTING_MIN_PAUSE,
    CHECKPOINTS_RETAINED,
    EPOCH_MAX_RECORDS,
    EPOCH_MIN_RECORDS,
    LOCAL_COPIES,
    RECOVERY_CLAIM_MODE,
    RECOVERY_PATH,
)
from headwater.common.configuration import Configuration
from headwater.common.errors import ConfigurationError
from headwater.graph.plan import JobPlan, OperatorSpec, SourceSpec
from headwater.operators.sink import SinkOperator
from headwater.runtime.job import launcher
from headwater.runtime.job.handle import LocalJobClient
from headwater.runtime.shadow.sink import DivertedSink

_POLL_SECONDS = 0.05
_RETAINED = 100_000
"""Keep all checkpoints of the run: they show up to where two runs have read the same input."""


@dataclass(frozen=True)
class ShadowRun:
    """What to run, and how far."""

    fork: str
    """The savepoint to start from."""
    fork_epoch: int
    directory: str
    """An empty directory for the run's checkpoints and output."""
    epoch_records: int
    """Every epoch reads this many records, however long that takes, so that two runs cut their input alike."""
    epochs: int | None = None
    """Stop after this many complete epochs."""
    seconds: float | None = None
    """Stop this long after the first complete epoch."""

    @property
    def checkpoints(self) -> Path:
        return Path(self.directory) / "checkpoints"

    @property
    def output(self) -> Path:
        return Path(self.directory) / "output"

    @property
    def sinks_file(self) -> Path:
        return Path(self.directory) / "sinks.json"

    def sinks(self) -> list[str]:
        """Return the uids of the job's sinks. Call it after the job has started."""
        uids: list[str] = json.loads(self.sinks_file.read_text(encoding="utf-8"))
        return uids


class ShadowDone(BaseException):
    """Ends the program after its shadow run. Not an Exception: programs might catch it."""


class ShadowExecutor:
    """Replaces the runtime (`set_executor`): runs the job of a program as a shadow."""

    def __init__(self, run: ShadowRun) -> None:
        self._run = run

    def launch(self, plan: JobPlan, configuration: Configuration, replan: Callable[[int], JobPlan]) -> NoReturn:
        """Run the job as far as requested, then raise `ShadowDone`, or the error that made the job fail."""
        if plan.batch_mode:
            raise ConfigurationError("a shadow run starts from a checkpoint, and jobs in BATCH mode have none")
        Path(self._run.directory).mkdir(parents=True, exist_ok=True)
        self._run.sinks_file.write_text(json.dumps(sorted(_sinks(plan))), encoding="utf-8")
        client = launcher.launch(diverted(plan, self._run.output), self._settings(configuration))
        assert isinstance(client, LocalJobClient)
        self._watch(client)
        if client.get_job_execution_result().done():
            client.get_job_execution_result().result()
        else:
            client.cancel().result()
        raise ShadowDone

    def _settings(self, configuration: Configuration) -> Configuration:
        run, settings = self._run, Configuration(configuration)
        for option in (CHECKPOINTING_INTERVAL, LOCAL_COPIES):
            settings.remove_config(option.key)
        settings.set(CHECKPOINTING_ENABLED, True)
        settings.set(CHECKPOINTING_MIN_PAUSE, 0)
        settings.set(CHECKPOINT_DIRECTORY, str(run.checkpoints))
        settings.set(CHECKPOINT_RETENTION, "RETAIN_ON_CANCELLATION")
        settings.set(CHECKPOINTS_RETAINED, _RETAINED)
        settings.set(RECOVERY_PATH, run.fork)
        settings.set(RECOVERY_CLAIM_MODE, "NO_CLAIM")
        settings.set(EPOCH_MIN_RECORDS, run.epoch_records)
        settings.set(EPOCH_MAX_RECORDS, run.epoch_records)
        return settings

    def _watch(self, client: LocalJobClient) -> None:
        """Return when the job has run far enough, or has ended."""
        result = client.get_job_execution_result()
        deadline: float | None = None
        while not result.done():
            completed = [each["epoch"] for each in client.checkpoints() if each["status"] == "completed"]
            if completed and self._run.epochs is not None and completed[-1] >= self._run.fork_epoch + self._run.epochs:
                return
            if completed and self._run.seconds is not None:
                deadline = deadline or time.monotonic() + self._run.seconds
                if time.monotonic() >= deadline:
                    return
            time.sleep(_POLL_SECONDS)


def diverted(plan: JobPlan, output: Path) -> JobPlan:
    """Return the same job with diverted sinks and without rate limits."""
    stages = tuple(
        replace(stage, operators=tuple(_diverted(operator, output) for operator in stage.operators))
        for stage in plan.stages
    )
    # Use another name, so that nobody takes this job for the real one.
    return replace(
        plan,
        name=f"{plan.name} (shadow)",
        stages=stages,
        sources=tuple(_unthrottled(source) for source in plan.sources),
    )


def _sinks(plan: JobPlan) -> list[str]:
    return [operator.uid for stage in plan.stages for operator in stage.operators if operator.sink is not None]


def _diverted(operator: OperatorSpec, output: Path) -> OperatorSpec:
    if operator.sink is None:
        return operator
    sink = DivertedSink(str(output), operator.uid)
    return replace(operator, sink=sink, factory=partial(SinkOperator, sink))


def _unthrottled(spec: SourceSpec) -> SourceSpec:
    """Remove a source's rate limit: it would make the size of an epoch depend on the clock."""
    source: Any = spec.source
    if getattr(source, "rate_per_second", None) is None:
        return spec
    source = copy.copy(source)
    source.rate_per_second = None
    return replace(spec, source=source)
