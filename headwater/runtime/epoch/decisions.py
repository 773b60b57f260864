"""What the driver does next, as pure functions from facts to values. The coordinator gathers the facts and executes.

Between two epochs: `decide`. After an attempt that failed: `decide_after_failure`.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason
from headwater.runtime.epoch.restart_policy import RestartPolicy

# --- between two epochs


@dataclass(frozen=True)
class CheckpointFacts:
    """What is known about checkpoints between two epochs."""

    in_flight: bool = False
    due: bool = True
    """The schedule wants the next epoch to end with one."""
    requested: bool = False
    """Somebody waits for one."""
    behind: bool = False
    """Epochs were accepted since the last cut."""


@dataclass(frozen=True)
class Facts:
    """What the driver knows between two epochs."""

    now_ms: int
    last_epoch_ms: int = 0
    """The processing time of the last epoch."""
    cancelled: bool = False
    asked: bool = False
    """Somebody asked for a savepoint, an end or another parallelism."""
    exhausted: bool = False
    """Every source was read to its end."""
    readable: bool = False
    """An epoch would find something to read."""
    next_timer_ms: int | None = None
    tick_ms: int | None = None
    """Time must be seen to pass so often, with input or without; None: it need not."""
    batch_mode: bool = False
    """Only the last epoch ends with a checkpoint."""
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
    """There is nothing to do: look again later."""


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
    """What comes next for a job whose input has not ended."""
    if facts.cancelled:
        return Cancel()
    if facts.asked:
        return Serve()
    if facts.exhausted:
        return Settle() if facts.checkpoint.in_flight else Finish()
    checkpoint = facts.checkpoint
    cut = cuts(checkpoint, batch_mode=facts.batch_mode)
    checkpoint_waits = checkpoint.in_flight or checkpoint.requested or (cut and checkpoint.behind)
    if facts.readable or _time_calls(facts) or checkpoint_waits:
        return Run(cut)
    return Wait()


def cuts(checkpoint: CheckpointFacts, *, batch_mode: bool, final: bool = False, wait: bool = False) -> bool:
    """Return True if the next epoch ends with a checkpoint. `wait`: the caller cannot go on without one."""
    if checkpoint.in_flight:
        return False
    if batch_mode:
        return final
    return wait or checkpoint.requested or checkpoint.due


def _time_calls(facts: Facts) -> bool:
    timer_is_due = facts.next_timer_ms is not None and facts.next_timer_ms <= facts.now_ms
    tick_is_due = facts.tick_ms is not None and facts.now_ms - facts.last_epoch_ms >= facts.tick_ms
    return timer_is_due or tick_is_due


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
