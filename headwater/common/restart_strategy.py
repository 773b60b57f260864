"""What to do after a failure, as in pyflink.common.restart_strategy. Each strategy is a few settings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta

from headwater.common.config import job_options as options
from headwater.common.configuration import Configuration
from headwater.common.errors import ConfigurationError
from headwater.common.time import DurationLike, to_millis


class RestartStrategyConfiguration(ABC):
    """A restart strategy. `apply` writes it into a job's configuration, which is what the runtime reads."""

    @abstractmethod
    def get_description(self) -> str: ...

    @abstractmethod
    def apply(self, configuration: Configuration) -> None:
        """Set the settings that this strategy stands for."""


@dataclass(frozen=True)
class _NoRestart(RestartStrategyConfiguration):
    def get_description(self) -> str:
        return "Restart deactivated."

    def apply(self, configuration: Configuration) -> None:
        configuration.set(options.RESTART_STRATEGY, "none")


@dataclass(frozen=True)
class _FallbackRestart(RestartStrategyConfiguration):
    def get_description(self) -> str:
        return "Cluster level default restart strategy"

    def apply(self, configuration: Configuration) -> None:
        """Change nothing: the settings, or their defaults, decide."""


class _FixedDelayRestart(RestartStrategyConfiguration):
    def __init__(self, restart_attempts: int, delay_between_attempts_interval: DurationLike) -> None:
        if isinstance(restart_attempts, bool) or not isinstance(restart_attempts, int) or restart_attempts < 0:
            raise ConfigurationError(f"restart_attempts: expected a whole number from 0 on, found {restart_attempts!r}")
        self._attempts = restart_attempts
        self._delay_ms = to_millis(delay_between_attempts_interval, "delay_between_attempts")

    def get_restart_attempts(self) -> int:
        return self._attempts

    def get_delay_between_attempts_interval(self) -> timedelta:
        return timedelta(milliseconds=self._delay_ms)

    def get_description(self) -> str:
        return f"Restart with fixed delay ({self._delay_ms} ms). #{self._attempts} restart attempts."

    def apply(self, configuration: Configuration) -> None:
        configuration.set(options.RESTART_STRATEGY, "fixed-delay")
        configuration.set(options.FIXED_DELAY_ATTEMPTS, self._attempts)
        configuration.set(options.FIXED_DELAY, self._delay_ms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _FixedDelayRestart) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self._attempts, self._delay_ms))


class _FailureRateRestart(RestartStrategyConfiguration):
    def __init__(
        self, max_failure_rate: int, failure_interval: DurationLike, delay_between_attempts_interval: DurationLike
    ) -> None:
        if isinstance(max_failure_rate, bool) or not isinstance(max_failure_rate, int) or max_failure_rate < 1:
            raise ConfigurationError(f"failure_rate: expected a whole number from 1 on, found {max_failure_rate!r}")
        self._max_failure_rate = max_failure_rate
        self._interval_ms = to_millis(failure_interval, "failure_interval")
        self._delay_ms = to_millis(delay_between_attempts_interval, "delay_interval")

    def get_max_failure_rate(self) -> int:
        return self._max_failure_rate

    def get_failure_interval(self) -> timedelta:
        return timedelta(milliseconds=self._interval_ms)

    def get_delay_between_attempts_interval(self) -> timedelta:
        return timedelta(milliseconds=self._delay_ms)

    def get_description(self) -> str:
        return (
            f"Failure rate restart with maximum of {self._max_failure_rate} failures within interval "
            f"{self._interval_ms} ms and fixed delay {self._delay_ms} ms."
        )

    def apply(self, configuration: Configuration) -> None:
        configuration.set(options.RESTART_STRATEGY, "failure-rate")
        configuration.set(options.FAILURE_RATE_MAX, self._max_failure_rate)
        configuration.set(options.FAILURE_RATE_INTERVAL, self._interval_ms)
        configuration.set(options.FAILURE_RATE_DELAY, self._delay_ms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _FailureRateRestart) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self._max_failure_rate, self._interval_ms, self._delay_ms))


class RestartStrategies:
    """Makers of restart strategies."""

    NoRestartStrategyConfiguration = _NoRestart
    FixedDelayRestartStrategyConfiguration = _FixedDelayRestart
    FailureRateRestartStrategyConfiguration = _FailureRateRestart
    FallbackRestartStrategyConfiguration = _FallbackRestart

    @staticmethod
    def no_restart() -> RestartStrategyConfiguration:
        return _NoRestart()

    @staticmethod
    def fall_back_restart() -> RestartStrategyConfiguration:
        return _FallbackRestart()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: DurationLike
    ) -> RestartStrategyConfiguration:
        """At most `restart_attempts` failures in a row, `delay_between_attempts` (int: milliseconds) after each."""
        return _FixedDelayRestart(restart_attempts, delay_between_attempts)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: DurationLike, delay_interval: DurationLike
    ) -> RestartStrategyConfiguration:
        """Goes on while there are at most `failure_rate` failures per `failure_interval` (int: milliseconds)."""
        return _FailureRateRestart(failure_rate, failure_interval, delay_interval)
