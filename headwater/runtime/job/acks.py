"""What tasks tell the driver at the end of an epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headwater.common.errors import HeadwaterError
from headwater.runtime.slot.protocol import SlotAck, SlotAddress, SnapshotPart
from headwater.runtime.stage.runner import EpochOutcome


@dataclass
class StageAck:
    """One partition of a stage has done its part of the epoch."""

    stage: int
    partition: int
    outcome: EpochOutcome
    worker_pid: int
    address: SlotAddress | None = None
    part: SnapshotPart | None = None
    full: Any = None  # SnapshotRef | None
    writing: tuple[str, ...] = ()
    restored: bool = False
    processing_ms: float = 0.0
    snapshot_ms: float = 0.0

    @classmethod
    def of_slot(cls, ack: SlotAck, worker_pid: int) -> StageAck:
        return cls(
            ack.stage, ack.partition, ack.outcome, worker_pid, ack.address, ack.part, ack.full, ack.writing,
            ack.restored, ack.processing_ms, ack.snapshot_ms,
        )  # fmt: skip


@dataclass
class SplitAck:
    """One split was read up to a new position."""

    source_id: int
    split_id: str
    position: bytes
    records: int
    finished: bool
    operator_state: bytes
    watermarks: dict[str, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    """Further counts of the reader, such as bad records that it skipped."""


@dataclass
class SourceAck:
    """One task of stage 0 is done. `outcome` is the result of its chained operators and sinks."""

    index: int
    outcome: EpochOutcome
    worker_pid: int


@dataclass
class EpochFailure:
    """The attempt cannot complete. With `error` no retry helps; otherwise the driver retries."""

    reason: str
    error: HeadwaterError | None = None
    retry: bool = False
    state_lost: bool = False
