"""The contract between the coordinator and the engine that runs its epochs: Spark, or something else in tests."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from headwater.common.errors import HeadwaterError
from headwater.graph.plan import StageSpec
from headwater.runtime.slot.protocol import Attempt, Base, BeginEpoch, SlotAddress
from headwater.runtime.stage.source_task import SourceTask
from headwater.time.watermark_keys import at_input

BATCH_RECORDS = 2048
"""A source's records pass the chained operators in batches of this size. Watermarks advance between batches."""


@dataclass(frozen=True)
class EpochHeader:
    """What every task of one epoch attempt needs to know."""

    attempt: Attempt
    base: Base
    now_ms: int
    checkpointing: bool
    final: bool
    driver_pid: int
    cut: bool = True
    wait: bool = False
    address_book: dict[tuple[int, int], SlotAddress] = field(default_factory=dict)
    watermarks: dict[tuple[int, int], dict[str, int]] = field(default_factory=dict)
    snapshots: dict[tuple[int, int], list[Any]] = field(default_factory=dict)
    restores: dict[tuple[int, int], Any] = field(default_factory=dict)
    """{partition: state to begin with}, until the first checkpoint in the job's own shape."""
    dataframe_state: dict[int, tuple[bytes, dict[str, int]]] = field(default_factory=dict)
    """{DataFrame source: (operator state, watermarks)} after the last epoch."""
    dataframe_bounded: bool = True
    batch_records: int = BATCH_RECORDS

    def floors(self, stage: StageSpec, partition: int) -> dict[int, int]:
        """Return {operator: its watermark before this epoch}."""
        reached = self.watermarks.get((stage.index, partition), {})
        return {
            operator.id: reached[at_input(operator.uid)]
            for operator in stage.operators
            if at_input(operator.uid) in reached
        }

    def begin_for(self, stage: int, partition: int) -> BeginEpoch:
        """Return the message that the relay of a partition sends to its slot. Called in the relay's process."""
        place = (stage, partition)
        return BeginEpoch(
            attempt=self.attempt,
            base=self.base,
            now_ms=self.now_ms,
            watermarks=self.watermarks.get(place, {}),
            snapshots=self.snapshots.get(place, []),
            checkpointing=self.checkpointing,
            cut=self.cut,
            wait=self.wait,
            restore=self.restores.get(place),
            relay_pid=os.getpid(),
            driver_pid=self.driver_pid,
        )


class EpochAttemptError(HeadwaterError):
    """An attempt failed. With `error` (from user code or user data) no retry helps; otherwise the driver retries."""

    def __init__(self, reason: str, *, error: HeadwaterError | None = None, state_lost: bool = False) -> None:
        super().__init__(reason)
        self.error = error
        self.state_lost = state_lost


class EngineLostError(HeadwaterError):
    """Spark itself is gone. The job ends, and resumes from its checkpoint at the next start."""


class Engine(Protocol):
    """Runs epoch attempts of one job."""

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Any]: ...

    def cancel(self) -> None: ...

    def close(self) -> None: ...


class NothingToRun:
    """The engine of a job that is finished already: its last output may be committed again, but no epoch runs."""

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Any]:
        raise AssertionError("a finished job runs no epoch")

    def cancel(self) -> None: ...

    def close(self) -> None: ...
