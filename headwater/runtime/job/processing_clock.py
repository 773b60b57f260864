"""Processing time, as the driver reads it to stamp epochs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

log = logging.getLogger(__name__)

NOTABLE_MS = 1_000
"""Smaller steps of the wall clock are not logged."""


class ProcessingClock:
    """Shows the wall clock, but never goes back and never stands still. In milliseconds.

    Where the wall clock goes back, time passes by the monotonic clock from the last reading on: timers, rates and polls
    keep their pace, ahead of the wall clock until that has caught up. (docs/decisions/0014-the-clock-goes-back.md)
    """

    def __init__(
        self,
        wall_ms: Callable[[], float] = lambda: time.time() * 1000,
        monotonic_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
    ) -> None:
        self._wall_ms = wall_ms
        self._monotonic_ms = monotonic_ms
        self._now_ms = wall_ms()
        self._read_at_ms = monotonic_ms()
        self._ahead_ms = 0.0
        """How far this clock is ahead of the wall clock, as was logged last."""

    def not_before(self, now_ms: int) -> None:
        """The job stands at an epoch of this time, which another machine's clock may have shown."""
        if now_ms > self._now_ms:
            self._now_ms, self._read_at_ms = now_ms, self._monotonic_ms()

    def now_ms(self) -> float:
        """Called by one thread."""
        # The process may sleep between the two readings. In this order, such pauses do not add up.
        monotonic_ms = self._monotonic_ms()
        wall_ms = self._wall_ms()
        due_ms = self._now_ms + monotonic_ms - self._read_at_ms
        self._tell(wall_ms, due_ms)
        if wall_ms >= due_ms:
            self._now_ms, self._read_at_ms = wall_ms, self._monotonic_ms()
        else:
            self._now_ms, self._read_at_ms = due_ms, monotonic_ms
        return self._now_ms

    def _tell(self, wall_ms: float, due_ms: float) -> None:
        ahead_ms = due_ms - wall_ms
        if ahead_ms - self._ahead_ms >= NOTABLE_MS:
            log.warning(
                "the clock went back: it shows %s, which is %s before processing time. Processing time goes on at its "
                "pace from where it was; check the clock of this machine, and of the one on which the job ran before",
                _shown(wall_ms), _seconds(ahead_ms),
            )  # fmt: skip
            self._ahead_ms = ahead_ms
        elif ahead_ms <= -NOTABLE_MS:
            log.warning(
                "the clock went ahead by %s, to %s: so does processing time, and its timers fire; the machine slept, "
                "or its clock was set",
                _seconds(-ahead_ms), _shown(wall_ms),
            )  # fmt: skip
        if ahead_ms <= 0:
            self._ahead_ms = 0.0


def _shown(wall_ms: float) -> str:
    return datetime.fromtimestamp(wall_ms / 1000, UTC).isoformat(timespec="seconds")


def _seconds(duration_ms: float) -> str:
    return f"{duration_ms / 1000:,.1f} s"
