"""When a split counts as idle, so that it does not hold back the watermark of all others."""

from __future__ import annotations


class IdlenessTimer:
    """Measures how long no record came. Time is the epoch's processing time, so a replay decides the same."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._last_active_ms: int | None = None

    def on_records(self, now_ms: int) -> None:
        """Note that records came at `now_ms`."""
        self._last_active_ms = now_ms

    def is_idle(self, now_ms: int) -> bool:
        """Return True if nothing came for the timeout. The first call starts the clock of a split without records."""
        if self._last_active_ms is None:
            self._last_active_ms = now_ms
        return now_ms - self._last_active_ms >= self._timeout_ms

    def state(self) -> int | None:
        return self._last_active_ms

    def restore(self, state: int | None) -> None:
        self._last_active_ms = state
