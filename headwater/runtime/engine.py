"""What the coordinator asks of whatever runs its epochs. Spark is behind this; tests may put something else there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from headwater.common.errors import HeadwaterError
from headwater.runtime.slot.protocol import Attempt, Base, SlotAddress
from headwater.runtime.source_task import SourceTask

BATCH_RECORDS = 2048
"""A source's records go through the chained operators in batches of this size; watermarks advance between them."""


@dataclass(frozen=True)
class EpochHeader:
    """What every task of one epoch attempt knows."""

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
    """{partition: what it begins with}, as long as the last checkpoint is that of a job of another shape."""
    dataframe_state: dict[int, tuple[bytes, dict[str, int]]] = field(default_factory=dict)
    """{DataFrame source: (operator state, watermarks)} where the last epoch left it."""
    dataframe_bounded: bool = True
    batch_records: int = BATCH_RECORDS


class EpochAttemptError(HeadwaterError):
    """An attempt failed. With `error` (the user's, or of the data) no retry helps; otherwise it is tried again."""

    def __init__(self, reason: str, *, error: HeadwaterError | None = None, state_lost: bool = False) -> None:
        super().__init__(reason)
        self.error = error
        self.state_lost = state_lost


class EngineLostError(HeadwaterError):
    """Spark itself is gone: the job ends here, and resumes from its checkpoint when it is started again."""


class Engine(Protocol):
    """Runs epoch attempts of one job."""

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Any]: ...

    def cancel(self) -> None: ...

    def close(self) -> None: ...
