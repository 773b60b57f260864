"""How many records the next epoch may read, so that it lasts about the target duration (back pressure).

The model is `duration = overhead + records * cost`. A line through the shortest epoch and another one gives the
overhead, at zero records; the cost follows the last epochs. A wrong overhead only delays the right size: after an epoch
of the target duration, the next one gets the same number of records, whatever the estimated overhead is.
"""

from __future__ import annotations

from typing import Final

from headwater.common.errors import ConfigurationError

_FIRST_RECORDS: Final = 1_000
_GROWTH: Final = 32
"""A budget is at most this many times the size of the last epochs."""
_OUTLIER: Final = 2.0
"""If records cost this many times more than before, ignore the epoch once: the next one must confirm it."""


class EpochSizer:
    """Chooses epoch budgets. Pure: it sees durations, never a clock."""

    def __init__(self, target_ms: int, min_records: int = 1_000, max_records: int = 10_000_000) -> None:
        if target_ms <= 0 or not 0 < min_records <= max_records:
            raise ConfigurationError(
                f"epochs of {target_ms} ms with {min_records} to {max_records} records make no sense; expected a "
                "positive headwater.epoch.duration and 0 < headwater.epoch.min-records <= headwater.epoch.max-records"
            )
        self._target_ms = target_ms
        self._min_records = min_records
        self._max_records = max_records
        self._epochs = 0
        self._overhead_ms: float | None = None
        self._shortest: tuple[int, float] | None = None  # (records, duration in ms)
        self._cost_ms: float | None = None
        self._last_records = 0
        self._doubtful = False
        self._ceiling = float(_FIRST_RECORDS)

    def observe(self, records: int, duration_ms: float) -> None:
        """Learn from a complete epoch. Do not report failed attempts: they say nothing about speed."""
        self._epochs += 1
        if self._epochs == 1 and duration_ms > self._target_ms:
            return  # the first epoch also starts workers and slots, so a slow one says nothing about the next
        self._last_records = records
        self._raise_ceiling(records)
        if self._doubts(records, duration_ms):
            return
        self._learn_overhead(records, duration_ms)
        if records > 0:
            self._learn_cost(self._cost_of(records, duration_ms))

    def next_budget(self) -> int:
        """Return the number of records for the next epoch, over all splits."""
        wanted = self._ceiling
        if self._cost_ms:
            # If the overhead alone takes the target duration, records get a quarter of the overhead's time.
            room_ms = max(self._target_ms - self.overhead_ms, 0.25 * self.overhead_ms)
            wanted = min(wanted, room_ms / self._cost_ms)
            if self._overhead_ms is None:
                wanted = max(wanted, 2.0 * self._last_records)  # epochs of one size cannot tell overhead from cost
        return int(max(self._min_records, min(self._max_records, wanted)))

    @property
    def overhead_ms(self) -> float:
        """The part of an epoch's duration that does not depend on its size; 0 while it is unknown."""
        return self._overhead_ms or 0.0

    def _learn_overhead(self, records: int, duration_ms: float) -> None:
        shortest = self._shortest or (records, duration_ms)
        small, large = sorted([shortest, (records, duration_ms)])
        if large[0] >= 2 * small[0] and large[0] > 0 and large[1] > small[1]:
            cost_ms = (large[1] - small[1]) / (large[0] - small[0])
            self._overhead_ms = max(0.0, small[1] - cost_ms * small[0])
        if duration_ms <= shortest[1]:
            self._shortest = (records, duration_ms)

    def _raise_ceiling(self, records: int) -> None:
        # It falls slowly, so that after a pause of the input the next burst need not start small.
        self._ceiling = max(float(_FIRST_RECORDS), _GROWTH * float(records), 0.8 * self._ceiling)

    def _doubts(self, records: int, duration_ms: float) -> bool:
        """Return True for the first epoch that costs far more than those before. A second one in a row is believed."""
        known = self._cost_ms
        out_of_line = bool(known and records > 0 and self._cost_of(records, duration_ms) > known * _OUTLIER)
        self._doubtful = out_of_line and not self._doubtful
        return self._doubtful

    def _cost_of(self, records: int, duration_ms: float) -> float:
        return max(duration_ms - self.overhead_ms, 0.05 * duration_ms) / records

    def _learn_cost(self, cost_ms: float) -> None:
        known = self._cost_ms
        close = known is not None and known / _OUTLIER <= cost_ms <= known * _OUTLIER
        self._cost_ms = (known + cost_ms) / 2 if known is not None and close else cost_ms
