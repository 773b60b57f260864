"""What a leader does next for a job: a pure decision on what its records and the processes say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from headwater.runtime.epoch.restart_policy import RestartPolicy
from headwater.server.jobs.job_folder import Start


class Life(Enum):
    """What is known of the driver process of a start."""

    COMING = "this server has just started it, and it has not taken its order yet"
    NOBODY = "no process has taken the order, and none of this server's will"
    ALIVE = "it runs"
    GONE = "it has ended, or its host no longer gives a sign of life"


@dataclass(frozen=True)
class JobFacts:
    """All that the decision depends on. `life` is of the last start's driver."""

    starts: Sequence[Start]
    life: Life
    cancelled: bool
    resumable: bool
    """The job makes checkpoints. On another host, a job without them must not be run twice."""
    here: bool
    """The last driver ran on this host, so that what `life` says is certain."""


@dataclass(frozen=True)
class OrderStart:
    """Start the driver for the `number`-th time, at `at_ms` or later."""

    number: int
    at_ms: int


@dataclass(frozen=True)
class Revoke:
    """Take the order back: its process never came."""

    number: int


@dataclass(frozen=True)
class NoteDeath:
    """Write down that the driver died, now."""

    number: int


@dataclass(frozen=True)
class Close:
    """The job is over for good."""

    status: str
    problem: str = ""


@dataclass(frozen=True)
class Watch:
    """Nothing to do but to notice the driver's end."""


Decision = OrderStart | Revoke | NoteDeath | Close | Watch


def decide(facts: JobFacts, policy: RestartPolicy) -> Decision:
    """Return what to do for a job that is not over yet."""
    last = facts.starts[-1] if facts.starts else None
    if last is None:
        return Close("CANCELED") if facts.cancelled else OrderStart(1, 0)
    if last.end is not None and not last.end.again:
        return Close(last.end.status, last.end.problem)
    if last.end is None and last.death is None:
        if last.driver is None:
            return Watch() if facts.life is Life.COMING else Revoke(last.number)
        if last.driver.revoked_by:
            return Close("CANCELED") if facts.cancelled else OrderStart(last.number + 1, 0)
        return Watch() if facts.life is Life.ALIVE else NoteDeath(last.number)
    if facts.cancelled:
        return Close("CANCELED")
    problem = last.end.problem if last.end is not None else last.death.problem if last.death is not None else ""
    if not facts.here and not facts.resumable:
        return Close(
            "FAILED",
            f"{problem}; the job makes no checkpoints, and its driver may still run there, so it is not started "
            "elsewhere",
        )
    failures = [_failed_ms(start) for start in facts.starts if start.end is not None or start.death is not None]
    delay_ms = policy.next_delay_ms(failures, failures[-1])
    if delay_ms is None:
        return Close("FAILED", f"{problem}; its driver was started {len(facts.starts)} times, which is the limit")
    return OrderStart(last.number + 1, failures[-1] + delay_ms)


def _failed_ms(start: Start) -> int:
    if start.end is not None:
        return start.end.ended_ms
    assert start.death is not None
    return start.death.noticed_ms
