"""What is known about a running job when somebody asks how it fares: the input of `findings` and `why`. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK, Place
from headwater.common.job_status import JobStatus
from headwater.runtime.job.checkpoint_stats import CheckpointStats
from headwater.runtime.job.metrics.job_metrics import Snapshot


@dataclass(frozen=True)
class SlotCondition:
    """How the process of a slot on this host looks from outside."""

    place: Place
    host: str
    pid: int
    stopped: bool = False
    gone: bool = False
    swapped_bytes: int = 0


@dataclass(frozen=True)
class SourceState:
    """One source, in the driver."""

    splits: int
    """Open ones that the job knows."""
    exhausted: bool


@dataclass(frozen=True)
class JobFacts:
    """Facts about one job at one moment."""

    figures: Snapshot
    status: JobStatus = JobStatus.RUNNING
    last_failure: str | None = None
    commit_problem: str | None = None
    """Why a sink's last try to commit failed, as long as it has not succeeded since."""
    checkpoints: tuple[CheckpointStats, ...] = ()
    """The last ones, oldest first."""
    checkpoint_interval_ms: int = 0
    """0: every epoch."""
    checkpoint_under_way_ms: float | None = None
    durable: bool = True
    """There is a place for checkpoints."""
    eager_sinks: frozenset[str] = frozenset()
    sources: Mapping[int, SourceState] = field(default_factory=dict)
    slots: tuple[SlotCondition, ...] = ()


@dataclass(frozen=True)
class Cause:
    """One thing that is wrong, or worth knowing. `cause` is a fixed word for tools, the rest is for people."""

    cause: str
    text: str
    cure: str
    operator: str | None = None
    """Name of the operator, source or sink."""
    vertex: str | None = None
    subtask: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "cause": self.cause,
            "operator": self.operator,
            "text": self.text,
            "cure": self.cure,
            "vertex": self.vertex,
            "subtask": self.subtask,
        }


_YEAR_2000_MS = 946_684_800_000


def shown_time(ms: int) -> str:
    """`2026-11-18 08:00:00.250 UTC`; numbers that are no dates of our time stay numbers, as in tests."""
    if ms == MIN_WATERMARK:
        return "the beginning of time"
    if ms == MAX_WATERMARK:
        return "the end of time"
    if not _YEAR_2000_MS <= ms < 4_102_444_800_000:
        return str(ms)
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.") + f"{ms % 1000:03d} UTC"


def shown_duration(ms: float) -> str:
    """`12 ms`, `3.4 s`, `5 min`, `2 h`."""
    for unit, size in (("h", 3_600_000), ("min", 60_000)):
        if ms >= 2 * size:
            return f"{ms / size:.0f} {unit}"
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms"
