"""When to retry a failed epoch: pure arithmetic on the times of past failures."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from headwater.common import config_options as options
from headwater.common.configuration import Configuration


class RestartPolicy(ABC):
    """Decides whether, and after what delay, the job goes on after a failure."""

    forgets_on_success: ClassVar[bool] = False
    """A completed epoch clears all failures before it: only failures in a row count."""

    @abstractmethod
    def next_delay_ms(self, failures: Sequence[int], now_ms: int) -> int | None:
        """Return the milliseconds to wait before the next attempt; None to give up.

        `failures` are the times (ms) of all failures that count, oldest first. The last one is the one to decide about.
        """


@dataclass(frozen=True)
class NoRestart(RestartPolicy):
    """The first failure ends the job."""

    def next_delay_ms(self, failures: Sequence[int], now_ms: int) -> int | None:
        return None


@dataclass(frozen=True)
class FixedDelay(RestartPolicy):
    """Allows `attempts` restarts in a row, each after `delay_ms`. A completed epoch resets the count."""

    forgets_on_success: ClassVar[bool] = True

    attempts: int = 10
    delay_ms: int = 1_000

    def next_delay_ms(self, failures: Sequence[int], now_ms: int) -> int | None:
        return self.delay_ms if len(failures) <= self.attempts else None


@dataclass(frozen=True)
class ExponentialDelay(RestartPolicy):
    """Delays grow with each failure, and start anew after `reset_threshold_ms` without a failure."""

    initial_ms: int = 1_000
    max_ms: int = 60_000
    multiplier: float = 1.5
    reset_threshold_ms: int = 3_600_000
    jitter: float = 0.1
    attempts: int | None = None
    """Give up after this many restarts without a reset in between. None: never."""

    def next_delay_ms(self, failures: Sequence[int], now_ms: int) -> int | None:
        streak = 0
        last: int | None = None
        for failed_ms in failures:
            quiet = last is not None and failed_ms - last >= self.reset_threshold_ms + self._delay(streak)
            streak = 1 if quiet else streak + 1
            last = failed_ms
        if self.attempts is not None and streak > self.attempts:
            return None
        delay = self._delay(streak)
        # The jitter keeps jobs that failed together from coming back together. It depends on the arguments only, so
        # that the same situation always gives the same answer.
        share = zlib.crc32(b"%d/%d" % (len(failures), now_ms)) / 2**31 - 1
        return min(self.max_ms, round(delay * (1 + self.jitter * share)))

    def _delay(self, streak: int) -> float:
        if streak < 1:
            return 0.0
        try:
            return min(float(self.max_ms), self.initial_ms * self.multiplier ** (streak - 1))
        except OverflowError:
            return float(self.max_ms)


@dataclass(frozen=True)
class FailureRate(RestartPolicy):
    """Restarts while there are at most `max_failures` failures within `interval_ms`."""

    max_failures: int = 1
    interval_ms: int = 60_000
    delay_ms: int = 1_000

    def next_delay_ms(self, failures: Sequence[int], now_ms: int) -> int | None:
        recent = sum(1 for failed_ms in failures if failed_ms > now_ms - self.interval_ms)
        return self.delay_ms if recent <= self.max_failures else None


def restart_policy(configuration: Configuration) -> RestartPolicy:
    """Return the policy that `configuration` asks for."""
    value = configuration.get
    match value(options.RESTART_STRATEGY):
        case "fixed-delay":
            return FixedDelay(value(options.FIXED_DELAY_ATTEMPTS), value(options.FIXED_DELAY))
        case "exponential-delay":
            return ExponentialDelay(
                initial_ms=value(options.EXPONENTIAL_INITIAL_BACKOFF),
                max_ms=value(options.EXPONENTIAL_MAX_BACKOFF),
                multiplier=value(options.EXPONENTIAL_MULTIPLIER),
                reset_threshold_ms=value(options.EXPONENTIAL_RESET_THRESHOLD),
                jitter=value(options.EXPONENTIAL_JITTER),
                attempts=value(options.EXPONENTIAL_ATTEMPTS),
            )
        case "failure-rate":
            return FailureRate(
                value(options.FAILURE_RATE_MAX), value(options.FAILURE_RATE_INTERVAL), value(options.FAILURE_RATE_DELAY)
            )
        case _:
            return NoRestart()
