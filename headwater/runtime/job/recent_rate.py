"""How many records per second a job has read lately."""

from __future__ import annotations

WINDOW_SECONDS = 5.0


class RecentRate:
    """The rate over the last seconds, computed from the epochs. Has no clock: callers pass all times, in seconds."""

    def __init__(self) -> None:
        self._points: list[tuple[float, int]] = []  # (end of an epoch, records read up to then)
        self._epoch_seconds = 0.0

    def clear(self) -> None:
        """Start counting anew."""
        self._points.clear()

    def epoch_done(self, now: float, records_in: int, epoch_seconds: float) -> None:
        """An epoch ended at `now`. `records_in` is the number of all records read so far."""
        self._points.append((now, records_in))
        self._epoch_seconds = epoch_seconds
        while len(self._points) > 2 and now - self._points[0][0] > WINDOW_SECONDS:
            self._points.pop(0)

    def at(self, now: float) -> float:
        """Return the rate at `now`. 0 if no epoch has ended lately, because the job has nothing to read."""
        if len(self._points) < 2:
            return 0.0
        (first_time, first_count), (last_time, last_count) = self._points[0], self._points[-1]
        # A job with long epochs is not idle while its next epoch runs.
        if now - last_time > max(WINDOW_SECONDS, 2 * self._epoch_seconds) or last_time <= first_time:
            return 0.0
        return (last_count - first_count) / (last_time - first_time)
