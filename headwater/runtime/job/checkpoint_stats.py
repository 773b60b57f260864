"""Statistics of one checkpoint, after it completed or failed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class PartStats:
    """One partition's part in a checkpoint."""

    stage: int
    partition: int
    full_bytes: int
    """Bytes that a restore of the partition reads; 0 if the checkpoint failed."""
    delta_bytes: int
    """Bytes that the partition wrote for this checkpoint."""
    sync_ms: float
    """How long processing stood still."""
    async_ms: float
    """How long the background write took."""
    arrived_ms: float
    """Time from the start of the epoch to the acknowledgement."""


@dataclass(frozen=True)
class CheckpointStats:
    """One checkpoint, completed or failed."""

    epoch: int
    status: str
    """'completed' or 'failed'"""
    reason: str | None
    triggered_ms: int
    """Wall clock, in milliseconds since 1970."""
    duration_ms: float
    """Time from the cut to the end: manifest durable and sinks committed."""
    full_bytes: int
    """Size of all files that a restore of this checkpoint reads."""
    parts: tuple[PartStats, ...] = ()
    manifest_ms: float = 0.0
    """How long it took to write the manifest."""
    commit_ms: float = 0.0
    """How long the sinks took to commit, with all their tries."""

    @property
    def delta_bytes(self) -> int:
        """Bytes that this checkpoint wrote."""
        return sum(part.delta_bytes for part in self.parts)

    @property
    def sync_ms(self) -> float:
        """The longest time that a partition stood still."""
        return max((part.sync_ms for part in self.parts), default=0.0)

    @property
    def async_ms(self) -> float:
        """The longest time that a partition took to write."""
        return max((part.async_ms for part in self.parts), default=0.0)

    @property
    def waiting_for_slowest_ms(self) -> float:
        """Time between the first partition's acknowledgement and the last one's."""
        arrivals = [part.arrived_ms for part in self.parts]
        return max(arrivals) - min(arrivals) if arrivals else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for people and tools."""
        return {
            **asdict(self),
            "delta_bytes": self.delta_bytes,
            "sync_ms": self.sync_ms,
            "async_ms": self.async_ms,
            "waiting_for_slowest_ms": self.waiting_for_slowest_ms,
        }
