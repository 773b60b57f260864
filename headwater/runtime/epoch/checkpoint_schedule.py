"""When to take a checkpoint, and when too many have failed. Pure: the caller passes the times."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CheckpointSettings:
    """As Flink's `CheckpointConfig`. All times in milliseconds."""

    interval_ms: int = 0
    """Least time between two cuts. 0: every epoch ends with a checkpoint."""
    min_pause_ms: int = 0
    """Least time between the end of one checkpoint and the cut of the next."""
    timeout_ms: int = 600_000
    """A checkpoint that takes longer has failed."""
    tolerable_failures: int = 0
    """This many failed checkpoints in a row are only logged."""


class CheckpointSchedule:
    """Which epochs end with a checkpoint. At most one is in flight. Times come from one monotonic clock."""

    def __init__(self, settings: CheckpointSettings) -> None:
        self._settings = settings
        self._last_cut_ms: float | None = None
        self._last_end_ms: float | None = None
        self._in_flight = False
        self._failures = 0

    def due(self, now_ms: float) -> bool:
        """Return True if the epoch that begins now must end with a checkpoint."""
        return self.due_in_ms(now_ms) == 0

    def due_in_ms(self, now_ms: float) -> float | None:
        """Return how long it is until the next checkpoint is due; None while one is in flight."""
        if self._in_flight:
            return None
        if self._last_cut_ms is None:
            return 0
        due_ms = self._last_cut_ms + self._settings.interval_ms
        if self._last_end_ms is not None:
            due_ms = max(due_ms, self._last_end_ms + self._settings.min_pause_ms)
        return max(0, due_ms - now_ms)

    def cut(self, now_ms: float) -> None:
        """A checkpoint is now in flight."""
        self._last_cut_ms, self._in_flight = now_ms, True

    @property
    def interval_ms(self) -> int:
        return self._settings.interval_ms

    @property
    def timeout_ms(self) -> int:
        return self._settings.timeout_ms

    def timed_out(self, now_ms: float) -> bool:
        """Return True if the checkpoint in flight has taken too long."""
        return (
            self._in_flight and self._last_cut_ms is not None and now_ms - self._last_cut_ms > self._settings.timeout_ms
        )

    def completed(self, now_ms: float) -> None:
        """The checkpoint in flight is durable."""
        self._last_end_ms, self._in_flight, self._failures = now_ms, False, 0

    def failed(self, now_ms: float) -> bool:
        """The checkpoint in flight failed. Return False if too many have failed in a row."""
        self._last_end_ms, self._in_flight = now_ms, False
        self._failures += 1
        return self._failures <= self._settings.tolerable_failures

    @property
    def fails(self) -> bool:
        """True if too many checkpoints in a row have failed, and none has completed since."""
        return self._failures > self._settings.tolerable_failures

    def abandoned(self) -> None:
        """The job goes back to an earlier checkpoint. The one in flight, if any, does not count as failed."""
        self._in_flight = False
