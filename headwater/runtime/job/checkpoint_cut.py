"""A checkpoint on its way from its cut to its manifest."""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass, field

import msgspec

from headwater.checkpoint.manifest import Manifest
from headwater.common.ids import Place
from headwater.runtime.epoch.messages import SnapshotPart
from headwater.runtime.job.checkpoint_stats import CheckpointStats, PartStats
from headwater.runtime.job.pending_output import Committables
from headwater.runtime.job.requests import SavepointRequest
from headwater.runtime.job.snapshot_chains import Chains


@dataclass
class Cut:
    """A checkpoint in flight."""

    token: str
    draft: Manifest
    """Its manifest without the snapshots, which are not known at the cut."""
    waiting_for: set[Place]
    triggered_ms: int
    started: float
    output: Committables = field(default_factory=dict)
    """What sinks prepared since the last cut. The draft names what became of it."""
    parts: dict[Place, SnapshotPart] = field(default_factory=dict)
    arrived: dict[Place, float] = field(default_factory=dict)
    manifest: Manifest | None = None
    chains: Chains = field(default_factory=dict)
    future: Future[None] | None = None
    manifest_ms: float = 0.0
    commit_ms: float = 0.0
    savepoints: list[SavepointRequest] = field(default_factory=list)
    """Copy the checkpoint for these requests."""

    def add_part(self, place: Place, part: SnapshotPart, elapsed_ms: float) -> None:
        """Add a partition's part, which arrived `elapsed_ms` after its epoch began. Ignores parts of other cuts."""
        if part.token == self.token and place in self.waiting_for:
            self.waiting_for.discard(place)
            self.parts[place] = part
            self.arrived[place] = elapsed_ms

    def age_ms(self) -> float:
        """How long ago it was cut."""
        return (time.monotonic() - self.started) * 1000

    def complete(self, chains: Chains) -> Manifest:
        """All parts have arrived: return the manifest."""
        self.chains = chains
        partitions = [
            msgspec.structs.replace(record, snapshots=chains.get(record.place, [])) for record in self.draft.partitions
        ]
        self.manifest = msgspec.structs.replace(self.draft, partitions=partitions)
        return self.manifest

    def stats(self, status: str, reason: str | None = None) -> CheckpointStats:
        """Return what became of it, for people."""
        ended = time.monotonic()
        parts = [
            PartStats(
                stage=place[0],
                partition=place[1],
                full_bytes=sum(ref.total_bytes for ref in self.chains.get(place, ())),
                delta_bytes=part.ref.total_bytes if part.ref is not None else 0,
                sync_ms=part.sync_ms,
                async_ms=part.async_ms,
                arrived_ms=self.arrived[place],
            )
            for place, part in sorted(self.parts.items())
        ]
        full_bytes = sum(ref.total_bytes for chain in self.chains.values() for ref in chain)
        return CheckpointStats(
            epoch=self.draft.epoch,
            status=status,
            reason=reason,
            triggered_ms=self.triggered_ms,
            duration_ms=(ended - self.started) * 1000,
            full_bytes=full_bytes,
            parts=tuple(parts),
            manifest_ms=self.manifest_ms,
            commit_ms=self.commit_ms,
        )
