"""Prepares the start of a job, before Spark: its directory, the lock on it, and the state to start from."""

from __future__ import annotations

import re
import shutil
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from headwater.checkpoint.paths import CLAIMS, MANIFESTS, OUTPUT, SNAPSHOTS, SPLITS, CheckpointLayout
from headwater.checkpoint.restore.rescale import OperatorShape, PartitionRestore, plan_restore
from headwater.checkpoint.savepoint.claimed import finish_deletion
from headwater.checkpoint.savepoint.savepoint import Savepoint, Where, open_savepoint
from headwater.checkpoint.start.copied_checkpoint import Fork
from headwater.checkpoint.start.decision import (
    ClaimMode,
    GivenSavepoint,
    Refuse,
    RequestedJob,
    Resume,
    Start,
    StartDecision,
    decide_start,
)
from headwater.checkpoint.start.directory_lock import DirectoryLock
from headwater.checkpoint.start.job_identity import job_id_of
from headwater.checkpoint.storage.base import StorageSpec, StoredFile, is_remote
from headwater.checkpoint.store import ManifestStore
from headwater.common.advice import warn_user
from headwater.common.config.option import ConfigOption
from headwater.common.config_options import (
    CHECKPOINT_DIRECTORY,
    CHECKPOINTING_ENABLED,
    FIXED_JOB_ID,
    IGNORE_UNCLAIMED_STATE,
    LOCAL_COPIES,
    RECOVERY_CLAIM_MODE,
    RECOVERY_PATH,
    STATE_DIRECTORY,
    STORAGE_OPTIONS,
    UID_MAPPING,
)
from headwater.common.configuration import Configuration
from headwater.common.errors import CheckpointError, ConfigurationError, short_repr
from headwater.common.ids import Place
from headwater.common.trusted_directories import check_trusted
from headwater.graph.plan import JobPlan
from headwater.runtime.job.fingerprint import plan_fingerprint, stateful_operators

_said: set[str] = set()
"""Warnings that this process has given."""


@dataclass
class JobStart:
    """How the job starts. Call `release` when the job ends."""

    job_id: str
    store: ManifestStore | None = None
    lock: DirectoryLock | None = None
    decision: StartDecision = field(default_factory=Start)
    savepoint: Savepoint | None = None
    """What the job starts from. None: its own checkpoint, or nothing."""
    directory: str | StorageSpec = ""
    """What opens the job's own directory elsewhere."""
    outlived: Where | None = None
    """A savepoint that is not needed any more once the job has completed a checkpoint in this run."""
    temporary: Path | None = None
    """This run's temporary directory. It is deleted when the job has finished."""

    @property
    def layout(self) -> CheckpointLayout | None:
        return self.store.layout if self.store is not None else None

    def restores(self, plan: JobPlan) -> dict[Place, PartitionRestore]:
        """Return the state that each partition begins with; {} if each begins with its own snapshots."""
        decision = self.decision
        if not isinstance(decision, Resume) or not decision.reshaped or self.layout is None:
            return {}
        directory = self.savepoint.directory if self.savepoint is not None else self.directory
        return plan_restore(decision.manifest, operator_shapes(plan), directory, decision.renamed)

    def release(self) -> None:
        if self.lock is not None:
            self.lock.release()


def prepare_start(plan: JobPlan, configuration: Configuration) -> JobStart:
    """Lock the checkpoint directory and decide how to start. Raises CheckpointError if the job must not run there."""
    proposed = _proposed_id(configuration)
    if not configuration.get(CHECKPOINTING_ENABLED) or plan.batch_mode:
        return JobStart(proposed)
    where, temporary = _directory(configuration, proposed)
    layout = CheckpointLayout(where)
    _check_trusted(where, "checkpoint directory")
    lock = DirectoryLock(layout, plan.name)
    lock.acquire()
    try:
        _check_trusted(where, "checkpoint directory")  # again: somebody else may have been faster to make it
        store = ManifestStore(layout)
        job = _requested(plan, configuration)
        # Decide once before taking over: a job that must not run here must not end the one that does.
        latest = store.latest()
        # A job with a checkpoint of its own no longer needs the savepoint, and has deleted a claimed one.
        fork = Fork(where)
        opened = _given(configuration, fork) if latest is None else None
        given = None if opened is None else _described(opened, configuration, fork)
        _accepted(decide_start(latest, job, given))
        latest = store.take_over(plan.name)
        if latest is not None:
            if ClaimMode[configuration.get(RECOVERY_CLAIM_MODE)] is ClaimMode.CLAIM:
                _finish_deletion(configuration)
        elif opened is not None:
            opened = fork.of(opened)
            given = _described(opened, configuration, fork)
        decision = _accepted(decide_start(latest, job, given))
        from_savepoint = isinstance(decision, Resume) and decision.savepoint is not None
        if opened is not None and from_savepoint:
            opened.copy_source_files(layout)
        job_id = latest.job_id if latest is not None else job_id_of(layout, proposed)
        directory = where if isinstance(where, StorageSpec) else str(where)
        outlived = fork.where if latest is not None and fork.is_there() else None
        savepoint = opened if from_savepoint else None
        return JobStart(job_id, store, lock, decision, savepoint, directory, outlived, temporary)
    except BaseException:
        lock.release()
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise


def _proposed_id(configuration: Configuration) -> str:
    """The id of the job, unless its directory has one already."""
    given = configuration.get(FIXED_JOB_ID)
    if given and not re.fullmatch("[0-9a-f]{32}", given):
        raise ConfigurationError(f"{FIXED_JOB_ID.key}: expected 32 hexadecimal digits, found {short_repr(given, 100)}")
    return given or uuid.uuid4().hex


def operator_shapes(plan: JobPlan) -> list[OperatorShape]:
    """Return what a restore must know about the operators after the first shuffle."""
    return [
        OperatorShape(operator.uid, stage.index, operator.parallelism, operator.needs_slot)
        for stage in plan.stages[1:]
        for operator in stage.operators
    ]


def _directory(configuration: Configuration, job_id: str) -> tuple[StorageSpec | Path, Path | None]:
    """The directory that was asked for, or one of its own for this run, removed when the job is over."""
    given = configuration.get(CHECKPOINT_DIRECTORY)
    if not given:
        temporary = Path(configuration.get(STATE_DIRECTORY)).expanduser() / "jobs" / job_id
        return temporary, temporary
    if not is_remote(given):
        return Path(given.removeprefix("file://")).expanduser().absolute(), None
    return StorageSpec(given, _pairs(configuration, STORAGE_OPTIONS), configuration.get(LOCAL_COPIES)), None


def _given(configuration: Configuration, fork: Fork) -> Savepoint | None:
    where = _recovery_path(configuration)
    if where is None:
        return None
    try:
        opened = open_savepoint(where)
    except CheckpointError as error:
        copy = fork.left()
        if copy is None:
            if fork.never_was():
                raise CheckpointError(
                    f"{error}. Name one that is there, or start the job without execution.state-recovery.path"
                ) from error
            raise CheckpointError(
                f"{error}. A copy of it, as an earlier start may have made, cannot be used either: {fork.why_not()}. "
                "Restore one of them, or start the job without execution.state-recovery.path"
            ) from error
        return copy
    _check_trusted(opened.layout.root, "savepoint")
    return opened


def _check_trusted(where: Path | StorageSpec | StoredFile, what: str) -> None:
    """What is in a store is protected by its credentials; a directory of this machine must be this user's."""
    if isinstance(where, Path):
        warning = check_trusted(where, what, (MANIFESTS, SNAPSHOTS, SPLITS, OUTPUT, CLAIMS))
        if warning is not None and warning not in _said:
            _said.add(warning)
            warn_user(warning)


def _finish_deletion(configuration: Configuration) -> None:
    where = _recovery_path(configuration)
    if where is not None:
        finish_deletion(where)


def _recovery_path(configuration: Configuration) -> str | StorageSpec | None:
    path = configuration.get(RECOVERY_PATH)
    if not path:
        return None
    return StorageSpec(path, _pairs(configuration, STORAGE_OPTIONS)) if is_remote(path) else path


def _described(savepoint: Savepoint, configuration: Configuration, fork: Fork) -> GivenSavepoint:
    copied = fork.holds(savepoint)
    return GivenSavepoint(
        path=savepoint.path,
        manifest=savepoint.manifest,
        is_savepoint=savepoint.is_savepoint,
        output_committed=savepoint.output_committed,
        claim_mode=ClaimMode.CLAIM if copied else ClaimMode[configuration.get(RECOVERY_CLAIM_MODE)],
    )


def _requested(plan: JobPlan, configuration: Configuration) -> RequestedJob:
    sinks = [operator.uid for stage in plan.stages for operator in stage.operators if operator.sink is not None]
    return RequestedJob(
        job_name=plan.name,
        plan_fingerprint=plan_fingerprint(plan),
        max_parallelism=plan.max_parallelism,
        operators=stateful_operators(plan),
        sources=frozenset(source.uid for source in plan.sources),
        sinks=frozenset(sinks),
        allow_non_restored_state=configuration.get(IGNORE_UNCLAIMED_STATE),
        uid_mapping=_pairs(configuration, UID_MAPPING),
    )


def _pairs(configuration: Configuration, option: ConfigOption[dict[str, str]]) -> dict[str, str]:
    return configuration.get(option, {})


def _accepted(decision: StartDecision) -> StartDecision:
    if isinstance(decision, Refuse):
        raise CheckpointError(decision.reason)
    return decision
