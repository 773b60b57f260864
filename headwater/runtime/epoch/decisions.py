"""What the driver does next, as pure functions from facts to values. The coordinator gathers the facts and executes.

Between two epochs: `decide`. After an attempt that failed: `decide_after_failure`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason
from headwater.runtime.epoch.restart_policy import RestartPolicy

# --- between two epochs


POLL_MS = 100
RESIDENT_PACE_MS = 10
"""The resident engine reads sources with a rate limit this often."""
IDLE_MS = 1_000
"""Look around at least this often: the copy of a savepoint may have taken too long."""


@dataclass(frozen=True)
class Pace:
    """How fast a job goes: its engine's parameters."""

    epoch_ms: int
    """Sources with a rate limit are read once in this time: shorter epochs gain nothing."""
    poll_ms: int = POLL_MS
    """How long to wait before a source that had no input is asked again."""
    tick_ms: int | None = None
    """Operators see time pass at least this often, with input or without; None: they need not."""

    def resident(self) -> Pace:
        """The same for epochs of milliseconds."""
        return replace(self, epoch_ms=min(self.epoch_ms, RESIDENT_PACE_MS))


@dataclass(frozen=True)
class SourceFacts:
    """What is known about sources between two epochs."""

    exhausted: bool = False
    """Every source was read to its end."""
    readable: bool = False
    """A source without a rate limit has splits. Whether they have records, only an epoch finds out."""
    watched: bool = False
    """The engine reports input of all of these sources: if they had nothing, they need not be asked."""
    rate_allows_ms: int | None = None
    """When a source with a rate limit may be read; None: there is none with splits."""
    discovery_ms: int | None = None
    """When a source looks for new splits."""


@dataclass(frozen=True)
class CheckpointFacts:
    """What is known about checkpoints between two epochs."""

    in_flight: bool = False
    due: bool = True
    """The schedule wants the next epoch to end with one."""
    due_ms: int | None = None
    """When it will want that."""
    requested: bool = False
    """Somebody waits for one."""
    behind: bool = False
    """Epochs were accepted since the last cut."""
    held_until_ms: int | None = None
    """When a checkpoint should make output visible that the last one held back."""


@dataclass(frozen=True)
class Facts:
    """What the driver knows between two epochs. All times are processing time."""

    now_ms: int
    pace: Pace
    last_epoch_ms: int = 0
    """The processing time of the last epoch: when it began."""
    dry_since_ms: int | None = None
    """When the last epoch ended, if it read nothing, and the engine has reported no input since."""
    cancelled: bool = False
    asked: bool = False
    """Somebody asked for a savepoint, an end or another parallelism."""
    micro_batch: bool = False
    """Spark has handed over a micro-batch, which must be an epoch with a checkpoint."""
    next_timer_ms: int | None = None
    batch_mode: bool = False
    """Only the last epoch ends with a checkpoint."""
    sources: SourceFacts = SourceFacts()
    checkpoint: CheckpointFacts = CheckpointFacts()


@dataclass(frozen=True)
class Cancel:
    """End the job. Its checkpoint stays."""


@dataclass(frozen=True)
class Serve:
    """Do what was asked for."""


@dataclass(frozen=True)
class Settle:
    """Bring the checkpoint in flight to its end by an epoch that reads nothing."""


@dataclass(frozen=True)
class Finish:
    """Run the last epoch: it ends event time."""


@dataclass(frozen=True)
class Run:
    """Run an epoch."""

    cut: bool
    """It ends with a checkpoint."""
    wait: bool = False
    """Its checkpoint is complete before the job goes on."""
    final: bool = False
    """It ends event time: the job's last."""
    reads: bool = True
    """False: it reads nothing, and event time stays where it is."""


@dataclass(frozen=True)
class Wait:
    """There is nothing to do before `until_ms`, unless somebody asks for something or the engine reports input."""

    until_ms: int


LAST = Run(cut=True, wait=True, final=True)
"""The last epoch of a job whose input has ended."""
CHECKPOINT = Run(cut=True, wait=True, reads=False)
"""An epoch only for the checkpoint at its end."""
DRAIN = Run(cut=True, wait=True, final=True, reads=False)
"""The same, but it ends event time."""
COLLECT = Run(cut=False, wait=True, reads=False)
"""An epoch in which slots hand over their parts of the checkpoint in flight."""

Decision = Cancel | Serve | Settle | Finish | Run | Wait


def decide(facts: Facts) -> Decision:
    """What comes next for a job whose last epoch was not its final one."""
    checkpoint = facts.checkpoint
    if facts.cancelled:
        return Cancel()
    if facts.asked:
        return Serve()
    if facts.micro_batch:
        return Run(cut=not checkpoint.in_flight, wait=True)
    if facts.sources.exhausted:
        return Settle() if checkpoint.in_flight else Finish()
    until_ms = min(_calls_for_an_epoch(facts), default=facts.now_ms + IDLE_MS)
    if until_ms <= facts.now_ms:
        return Run(_cuts(facts))
    if facts.sources.discovery_ms is not None:
        until_ms = min(until_ms, max(facts.sources.discovery_ms, facts.now_ms + 1))
    return Wait(min(until_ms, facts.now_ms + IDLE_MS))


def _cuts(facts: Facts) -> bool:
    """Return True if an epoch that begins now ends with a checkpoint."""
    checkpoint = facts.checkpoint
    return not facts.batch_mode and not checkpoint.in_flight and (checkpoint.requested or checkpoint.due)


def _calls_for_an_epoch(facts: Facts) -> Iterator[int]:
    """Yield when something calls for an epoch: input, a timer, a tick, a checkpoint."""
    pace, sources, checkpoint = facts.pace, facts.sources, facts.checkpoint
    poll_ms = facts.now_ms if facts.dry_since_ms is None else facts.dry_since_ms + pace.poll_ms
    dry_and_watched = sources.watched and facts.dry_since_ms is not None
    if (sources.readable and not dry_and_watched) or checkpoint.in_flight:  # slots hand over their parts in epochs
        yield poll_ms
    if sources.rate_allows_ms is not None:
        yield max(poll_ms, sources.rate_allows_ms, facts.last_epoch_ms + pace.epoch_ms)
    if facts.next_timer_ms is not None:
        yield facts.next_timer_ms
    if pace.tick_ms is not None:
        yield facts.last_epoch_ms + pace.tick_ms
    if _cuts(facts) and (checkpoint.requested or checkpoint.behind):
        yield facts.now_ms
    elif checkpoint.behind and checkpoint.due_ms is not None and not facts.batch_mode:
        yield checkpoint.due_ms
    if checkpoint.held_until_ms is not None and not checkpoint.in_flight and not facts.batch_mode:
        may_cut_ms = facts.now_ms if checkpoint.due else checkpoint.due_ms
        if may_cut_ms is not None:
            yield max(checkpoint.held_until_ms, may_cut_ms)


# --- after an attempt that failed


@dataclass(frozen=True)
class TryAgain:
    """Run the same epoch once more, after a while."""

    delay_ms: int


@dataclass(frozen=True)
class GoBack:
    """After a while, go back to the last complete checkpoint (without one, to the beginning) and go on from there."""

    delay_ms: int


@dataclass(frozen=True)
class GiveUp:
    """The job fails."""

    why: str


def decide_after_failure(
    failure: AttemptFailedError,
    failures_ms: list[int],
    policy: RestartPolicy,
    *,
    can_go_back: bool,
) -> TryAgain | GoBack | GiveUp:
    """What follows a failure that another attempt may not meet again.

    `failures_ms` are the times of all failures up to this one, which is the last of them. A failure of the program
    itself (`FailureReason.PROGRAM`) is not for this function: no other attempt helps.
    """
    lost = failure.reason is FailureReason.STATE_LOST
    if lost and not can_go_back:
        return GiveUp(
            f"failed: {failure}; without checkpoints there is nothing to go back to. Set execution.checkpointing.dir, "
            "or start the job again from the beginning"
        )
    delay_ms = policy.next_delay_ms(failures_ms, failures_ms[-1])
    if delay_ms is None:
        return GiveUp(f"failed {len(failures_ms)} times, and the restart policy allows no more: {failure}")
    return GoBack(delay_ms) if lost else TryAgain(delay_ms)
