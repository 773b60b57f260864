"""How many records per second a job has read lately."""

from __future__ import annotations

WINDOW_SECONDS = 5.0


class RecentRate:
    """The rate over the last seconds, from what each epoch read. Has no clock: all times are given, in seconds."""

    def __init__(self) -> None:
        self._points: list[tuple[float, int]] = []  # (end of an epoch, records read up to then)
        self._epoch_seconds = 0.0

    def clear(self) -> None:
        """The count begins anew."""
        self._points.clear()

    def epoch_done(self, now: float, records_in: int, epoch_seconds: float) -> None:
        """An epoch ended `now`; with it, `records_in` were read in all."""
        self._points.append((now, records_in))
        self._epoch_seconds = epoch_seconds
        while len(self._points) > 2 and now - self._points[0][0] > WINDOW_SECONDS:
            self._points.pop(0)

    def at(self, now: float) -> float:
        """0 if no epoch has ended lately: a job that has nothing to read runs none."""
        if len(self._points) < 2:
            return 0.0
        (first_time, first_count), (last_time, last_count) = self._points[0], self._points[-1]
        # A job whose epochs are long is not idle while the next one is under way.
        if now - last_time > max(WINDOW_SECONDS, 2 * self._epoch_seconds) or last_time <= first_time:
            return 0.0
        return (last_count - first_count) / (last_time - first_time)
