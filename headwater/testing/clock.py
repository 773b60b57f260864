"""A clock that tests turn by hand."""

from __future__ import annotations

import threading


class ManualClock:
    """Processing time in milliseconds. It never goes back, like the driver's. Safe between threads.

    At 0, the default start, timestamps that are too far ahead of processing time are not refused.
    """

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._lock = threading.Lock()

    @property
    def now_ms(self) -> int:
        return self._now_ms

    def set(self, now_ms: int) -> None:
        """Turn the clock to `now_ms`."""
        with self._lock:
            if now_ms < self._now_ms:
                raise ValueError(f"the clock shows {self._now_ms} and cannot go back to {now_ms}")
            self._now_ms = now_ms

    def advance(self, by_ms: int) -> None:
        """Advance the clock by `by_ms`."""
        if by_ms < 0:
            raise ValueError(f"the clock cannot go back by {-by_ms}")
        with self._lock:
            self._now_ms += by_ms
