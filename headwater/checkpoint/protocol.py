"""Decisions about starting, resuming and replaying, as pure functions from observed facts to values.

The runtime observes (store.py, Spark's batch id), asks here, and executes the answer. Nothing here does I/O, so every
case is a line in a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.checkpoint.manifest import Manifest
from headwater.common.ids import Epoch

FIRST_EPOCH = Epoch(0)


@dataclass(frozen=True)
class RequestedJob:
    """What the program that is being started wants to run."""

    job_name: str
    plan_fingerprint: str
    """Changes when a partition could no longer find its state: stages, their operators' uids, their parallelism."""
    max_parallelism: int
    operators: Mapping[str, str] = field(default_factory=dict)
    """{uid: name} of the operators that keep state."""
    sources: frozenset[str] = frozenset()
    sinks: frozenset[str] = frozenset()
    allow_non_restored_state: bool = False
    """Drop state whose operator the job no longer has, instead of refusing."""


@dataclass(frozen=True)
class Start:
    """The directory is fresh: begin at the first epoch."""

    next_epoch: Epoch = FIRST_EPOCH
    incarnation: int = 1


@dataclass(frozen=True)
class Resume:
    """Go on from `manifest`. First commit its committables again: the crash may have come before its commit."""

    manifest: Manifest
    next_epoch: Epoch
    incarnation: int
    recommit: Mapping[str, list[bytes]]


@dataclass(frozen=True)
class AlreadyFinished:
    """The job ended in an earlier run. Only its last commit may have to be repeated."""

    manifest: Manifest
    recommit: Mapping[str, list[bytes]]


@dataclass(frozen=True)
class Refuse:
    """The job must not run on this directory; `reason` is the text of the CheckpointError to raise."""

    reason: str


StartDecision = Start | Resume | AlreadyFinished | Refuse


def decide_start(latest: Manifest | None, job: RequestedJob) -> StartDecision:
    """How to start `job` on a directory whose newest manifest is `latest`."""
    if latest is None:
        return Start()
    reason = _why_not(latest, job)
    if reason is not None:
        return Refuse(reason)
    if latest.finished:
        return AlreadyFinished(latest, latest.committables)
    return Resume(latest, Epoch(latest.epoch + 1), latest.incarnation + 1, latest.committables)


def _why_not(latest: Manifest, job: RequestedJob) -> str | None:
    what = f"checkpoint of job '{latest.job_name}', epoch {latest.epoch},"
    fresh = "give the job a fresh directory with execution.checkpointing.dir"
    unknown_sinks = sorted(uid for uid, items in latest.committables.items() if items and uid not in job.sinks)
    if unknown_sinks:
        return (
            f"{what} has output to commit for sink {_names(unknown_sinks)}, which this job lacks; put the sink back "
            f"for one run, or {fresh}"
        )
    if latest.max_parallelism != job.max_parallelism:
        return (
            f"{what} was made with max parallelism {latest.max_parallelism}, this job asks for {job.max_parallelism}; "
            f"set pipeline.max-parallelism back to {latest.max_parallelism}, or {fresh}"
        )
    gone = sorted(uid for uid in latest.operators if uid not in job.operators)
    if gone and not job.allow_non_restored_state:
        shown = ", ".join(f"'{uid}' ({latest.operators[uid]})" for uid in gone)
        return (
            f"{what} has state for uid {shown}, which this job lacks; restore the operator, or pass "
            "allow_non_restored_state=True to drop it"
        )
    lost = sorted(uid for uid in latest.sources if uid not in job.sources)
    if lost and not job.allow_non_restored_state:
        return (
            f"{what} has positions of source {_names(lost)}, which this job lacks; restore the source, or pass "
            "allow_non_restored_state=True to drop them"
        )
    if latest.plan_fingerprint != job.plan_fingerprint:
        new = sorted(uid for uid in job.operators if uid not in latest.operators)
        change = f"new stateful operators: {_names(new)}" if new else "its operators, their order or parallelism differ"
        return (
            f"{what} was made by a job of another shape ({change}); run the program as it was, with the same "
            f"parallelism, or {fresh}"
        )
    return None


def _names(uids: list[str]) -> str:
    return ", ".join(f"'{uid}'" for uid in uids)


@dataclass(frozen=True)
class Run:
    """Process the batch as this epoch."""

    epoch: Epoch


@dataclass(frozen=True)
class SkipAndRecommit:
    """The epoch has its manifest: the crash came between it and Spark's own commit. Do not process, commit again."""

    epoch: Epoch


EpochDecision = Run | SkipAndRecommit | Refuse


def decide_epoch(batch_id: int, latest_epoch: int | None) -> EpochDecision:
    """What to do with Spark's micro-batch `batch_id`, where epoch and batch id are the same number.

    Spark repeats at most the one batch whose commit it did not note. Any other distance means that Spark's offsets and
    our manifests are not of one job, and processing would lose or repeat records.
    """
    expected = FIRST_EPOCH if latest_epoch is None else latest_epoch + 1
    if batch_id == expected:
        return Run(Epoch(batch_id))
    if latest_epoch is not None and batch_id == latest_epoch:
        return SkipAndRecommit(Epoch(batch_id))
    return Refuse(
        f"Spark asks for batch {batch_id}, but the newest manifest is of epoch {latest_epoch}; expected batch "
        f"{expected} or a repetition of the last one. Spark's offsets and the manifests in the checkpoint directory do "
        "not belong together: restore both from one copy, or use a fresh directory"
    )
