"""Which Spark engine runs the next epoch, and how many records it may read. Pure: it sees durations, never a clock.

Small epochs run resident: one Spark task takes them through all stages in milliseconds. When input piles up, epochs run
as Spark jobs with shuffles, which read on all cores.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum

from headwater.runtime.epoch.sizing import EpochSizer

RESIDENT_MS = 30
"""An epoch fits the resident engine if it is expected to take no longer than this, or no longer than with shuffles."""

SMALL_EPOCHS = 2
"""After so many epochs in a row that would fit the resident engine, it takes over."""

FULL_EPOCHS = 8
"""After so many resident epochs in a row that left input unread, the shuffle engine takes over."""

TELLING_RECORDS = 100
"""A resident epoch of so many records tells what a record costs. In smaller ones that is lost in the noise."""

_ASSUMED_COST_MS = 0.01
"""Cost of one record on the resident engine, until it is measured."""


class EngineSetting(StrEnum):
    """What `headwater.epoch.engine` may be."""

    AUTO = "auto"
    RESIDENT = "resident"
    SHUFFLE = "shuffle"


class EngineChoice:
    """Chooses between the engines of one job. Without a sizer for the resident engine there is only the other one."""

    def __init__(
        self, shuffle: EpochSizer, resident: EpochSizer | None = None, setting: EngineSetting = EngineSetting.AUTO
    ) -> None:
        self._shuffle = shuffle
        self._resident = resident
        self._setting = setting if resident is not None else EngineSetting.SHUFFLE
        self.resident = self._setting is EngineSetting.RESIDENT
        """True: the next epoch runs resident, unless it reads DataFrames."""
        self._streak = 0
        """Epochs in a row that speak for the other engine."""
        self._costs_ms: deque[float] = deque(maxlen=3)
        """Cost of a record in the last large resident epochs. The lowest counts: one may include the task's start."""

    def budget(self) -> int:
        """How many records the next epoch may read, over all splits."""
        return self._sizer(resident=self.resident).next_budget()

    def observe(self, *, resident: bool, records: int, budget: int, duration_ms: float) -> None:
        """Learn from a complete epoch that was allowed to read `budget` records."""
        self._sizer(resident=resident).observe(records, duration_ms)
        if resident and records >= TELLING_RECORDS:
            assert self._resident is not None
            self._costs_ms.append(max(0.0, duration_ms - self._resident.overhead_ms) / records)
        if self._setting is not EngineSetting.AUTO or resident != self.resident:
            return
        all_read = records < budget
        speaks_for_other = not all_read if resident else all_read and self._fits(records, duration_ms)
        self._streak = self._streak + 1 if speaks_for_other else 0
        if self._streak >= (FULL_EPOCHS if resident else SMALL_EPOCHS):
            self._turn_to(resident=not resident)

    def failed(self) -> None:
        """An attempt failed. The next one runs with shuffles: these start slots on all hosts."""
        if self._setting is EngineSetting.AUTO:
            self._turn_to(resident=False)

    def _turn_to(self, *, resident: bool) -> None:
        self.resident, self._streak = resident, 0

    def _fits(self, records: int, duration_ms: float) -> bool:
        """Whether the resident engine is quick with so many records, or at least no slower than shuffles were."""
        assert self._resident is not None
        cost_ms = min(self._costs_ms, default=_ASSUMED_COST_MS)
        return self._resident.overhead_ms + cost_ms * records <= max(RESIDENT_MS, duration_ms)

    def _sizer(self, *, resident: bool) -> EpochSizer:
        return self._resident if resident and self._resident is not None else self._shuffle
