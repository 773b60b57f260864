"""Decisions about starting and resuming: pure functions from observed facts to values.

The runtime reads the facts (store.py, savepoint.py), calls `decide_start`, and executes the decision. Nothing here does
I/O, so every case is a line in a test.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.restore.rescale import rename_uids
from headwater.common.config_options import IGNORE_UNCLAIMED_STATE, UID_MAPPING
from headwater.common.ids import Epoch
from headwater.time.watermark_keys import uid_of

FIRST_EPOCH = Epoch(0)

_DROP = f"{IGNORE_UNCLAIMED_STATE.key}=true (headwater run -n)"


class ClaimMode(Enum):
    """Who owns a savepoint after a job was started from it (`execution.state-recovery.claim-mode`)."""

    NO_CLAIM = "NO_CLAIM"
    """The user: the job never writes to it, and does not need it after its own first checkpoint."""
    CLAIM = "CLAIM"
    """The job: it deletes the savepoint once it has a complete checkpoint of its own."""


@dataclass(frozen=True)
class RequestedJob:
    """What the program to start needs and allows."""

    job_name: str
    plan_fingerprint: str
    """Differs from the stored one if stages, their operators' uids or their parallelism changed."""
    max_parallelism: int
    operators: Mapping[str, str] = field(default_factory=dict)
    """{uid: name} of the operators that keep state."""
    sources: frozenset[str] = frozenset()
    sinks: frozenset[str] = frozenset()
    allow_non_restored_state: bool = False
    """Drop state whose operator the job no longer has, instead of refusing to start."""
    uid_mapping: Mapping[str, str] = field(default_factory=dict)
    """{old uid: new uid} of operators, sources and sinks that were renamed."""


@dataclass(frozen=True)
class GivenSavepoint:
    """What was found at `execution.state-recovery.path`."""

    path: str
    manifest: Manifest
    is_savepoint: bool
    """False: it is a checkpoint that another job retains."""
    output_committed: bool = False
    """The output of its epoch is certainly visible."""
    claim_mode: ClaimMode = ClaimMode.NO_CLAIM


@dataclass(frozen=True)
class Start:
    """The directory is fresh: begin at the first epoch."""

    next_epoch: Epoch = FIRST_EPOCH
    incarnation: int = 1


@dataclass(frozen=True)
class Resume:
    """Resume from `manifest`. First commit `recommit`: the crash may have come before that epoch's commit."""

    manifest: Manifest
    """Its uids are already those of the job to start."""
    next_epoch: Epoch
    incarnation: int
    recommit: Mapping[str, list[bytes]]
    reshaped: bool = False
    """Partitions get their state through `rescale.plan_restore`, and write a whole snapshot first."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """{uid in the snapshots: uid now}, only of renamed operators, for `plan_restore`."""
    dropped: tuple[str, ...] = ()
    """Uids whose state is dropped, as `allow_non_restored_state` permits."""
    savepoint: GivenSavepoint | None = None
    """Where to read the state from. None: from the job's own directory."""

    @property
    def dispose_savepoint(self) -> bool:
        """Delete the savepoint when the job's own first checkpoint is complete."""
        return self.savepoint is not None and self.savepoint.claim_mode is ClaimMode.CLAIM


@dataclass(frozen=True)
class AlreadyFinished:
    """The job finished in an earlier run. Only commit `recommit` again: that run may have died before it."""

    manifest: Manifest
    recommit: Mapping[str, list[bytes]]


@dataclass(frozen=True)
class Refuse:
    """The job must not run on this directory. `reason` is the text of the CheckpointError to raise."""

    reason: str


StartDecision = Start | Resume | AlreadyFinished | Refuse


def decide_start(latest: Manifest | None, job: RequestedJob, given: GivenSavepoint | None = None) -> StartDecision:
    """Decide how to start `job` on a directory whose newest manifest is `latest`.

    A job that has a checkpoint of its own resumes from it and ignores the given savepoint. So the same command line
    starts the job and, after a crash, resumes it.
    """
    if latest is not None:
        what = f"checkpoint of job '{latest.job_name}', epoch {latest.epoch},"
        return _resume_own(latest, job, what)
    if given is not None:
        return _start_from(given, job)
    return Start()


def _resume_own(latest: Manifest, job: RequestedJob, what: str) -> StartDecision:
    renamed = renames(latest, job.uid_mapping, _uids_of(job), what)
    if isinstance(renamed, Refuse):
        return renamed
    manifest = rename_uids(latest, renamed)
    cure = "give the job a fresh directory with execution.checkpointing.dir"
    reason = _why_not(manifest, job, what, cure, manifest.committables)
    if reason is not None:
        return Refuse(reason)
    if manifest.finished:
        return AlreadyFinished(manifest, manifest.committables)
    return Resume(
        manifest,
        Epoch(manifest.epoch + 1),
        manifest.incarnation + 1,
        manifest.committables,
        reshaped=bool(renamed) or manifest.plan_fingerprint != job.plan_fingerprint,
        renamed=renamed,
        dropped=_missing(manifest.operators, job.operators),
    )


def _start_from(given: GivenSavepoint, job: RequestedJob) -> StartDecision:
    kind = "savepoint" if given.is_savepoint else "checkpoint"
    what = f"{kind} {given.path} of job '{given.manifest.job_name}', epoch {given.manifest.epoch},"
    if given.claim_mode is ClaimMode.CLAIM and not given.is_savepoint:
        return Refuse(
            f"{what} belongs to the job that retains it and cannot be claimed; set "
            "execution.state-recovery.claim-mode to NO_CLAIM, or make a savepoint of it (headwater savepoint copy) and "
            "claim that"
        )
    renamed = renames(given.manifest, job.uid_mapping, _uids_of(job), what)
    if isinstance(renamed, Refuse):
        return renamed
    manifest = rename_uids(given.manifest, renamed)
    recommit = {} if given.output_committed else manifest.committables
    cure = "start the job without execution.state-recovery.path"
    reason = _why_not(manifest, job, what, cure, recommit)
    if reason is not None:
        return Refuse(reason)
    return Resume(
        manifest,
        Epoch(manifest.epoch + 1),
        1,
        recommit,
        reshaped=True,  # the files belong to another directory: a chain never spans two directories
        renamed=renamed,
        dropped=_missing(manifest.operators, job.operators),
        savepoint=given,
    )


def renames(
    manifest: Manifest, uid_mapping: Mapping[str, str], wanted: Collection[str], what: str
) -> Mapping[str, str] | Refuse:
    """Return the part of a job's uid mapping that `manifest` still needs, or `Refuse` if the mapping is wrong.

    `wanted` are the uids of the job's stateful operators, sources and sinks. Error texts call the manifest `what`.
    """
    known = {
        *manifest.operators,
        *manifest.sources,
        *manifest.committables,
        *manifest.held,
        *_uids_of_watermarks(manifest),
    }
    found: dict[str, str] = {}
    for old, new in uid_mapping.items():
        if old == new:
            continue
        if old not in known:
            if new in known:
                continue  # the job has written a checkpoint since the renaming
            return Refuse(
                f"{what} has no uid '{old}', which the uid mapping renames to '{new}'; "
                f"{_suggestion(old, known)}correct or remove the entry"
            )
        if new not in wanted:
            return Refuse(
                f"the uid mapping renames '{old}' to '{new}', but this job has no stateful operator, source or sink "
                f"'{new}'; {_suggestion(new, wanted)}correct or remove the entry"
            )
        # This refuses a swap of two uids too: a job that resumes after a crash would swap them back.
        if new in found.values() or new in known:
            return Refuse(
                f"{what} would have state of two operators for uid '{new}', because the uid mapping renames '{old}' to "
                "it; map each uid to one that nothing else has"
            )
        found[old] = new
    return found


def _uids_of(job: RequestedJob) -> set[str]:
    return {*job.operators, *job.sources, *job.sinks}


def _uids_of_watermarks(manifest: Manifest) -> set[str]:
    return {uid_of(key) for record in manifest.partitions for key in record.watermarks}


def _why_not(
    manifest: Manifest, job: RequestedJob, what: str, cure: str, recommit: Mapping[str, list[bytes]]
) -> str | None:
    unknown_sinks = sorted(manifest.sinks_with_output(recommit) - set(job.sinks))
    if unknown_sinks:
        return (
            f"{what} has output to commit for sink {_names(unknown_sinks)}, which this job lacks; put the sink back "
            f"for one run, or {cure}"
        )
    if manifest.max_parallelism != job.max_parallelism:
        return (
            f"{what} was made with max parallelism {manifest.max_parallelism}, this job asks for "
            f"{job.max_parallelism}; key groups are fixed for the life of the state: set pipeline.max-parallelism "
            f"back to {manifest.max_parallelism}, or {cure}"
        )
    gone = _missing(manifest.operators, job.operators)
    if gone and not job.allow_non_restored_state:
        shown = ", ".join(f"'{uid}' ({manifest.operators[uid]})" for uid in gone)
        return (
            f"{what} has state for uid {shown}, which this job lacks; put the operator or its uid back, map the "
            f"old uid to its new one with {UID_MAPPING.key}, or drop the state with {_DROP}"
        )
    lost = _missing(manifest.sources, job.sources)
    if lost and not job.allow_non_restored_state:
        return (
            f"{what} has positions of source {_names(lost)}, which this job lacks; put the source or its uid back, map "
            f"the old uid to its new one with {UID_MAPPING.key}, or drop the positions with {_DROP}"
        )
    return None


def _missing(stored: Iterable[str], present: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(stored) - set(present)))


def _suggestion(wrong: str, known: Iterable[str]) -> str:
    candidates = sorted(known)
    close = difflib.get_close_matches(wrong, candidates, n=1)
    if close:
        return f"did you mean '{close[0]}'? "
    return f"it has {_names(candidates)}; " if candidates else ""


def _names(uids: Iterable[str]) -> str:
    return ", ".join(f"'{uid}'" for uid in uids)
