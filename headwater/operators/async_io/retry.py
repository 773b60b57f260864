"""Whether and when to retry a request, as in `pyflink.datastream.async_retry_strategies`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from headwater.common.errors import ConfigurationError

ResultPredicate = Callable[[list[Any]], bool]
ExceptionPredicate = Callable[[Exception], bool]


class AsyncRetryPredicate(ABC):
    """Says which outcomes of a request to retry."""

    @abstractmethod
    def result_predicate(self) -> ResultPredicate | None:
        """Return a function that is True for results to retry; None: retry no results."""

    @abstractmethod
    def exception_predicate(self) -> ExceptionPredicate | None:
        """Return a function that is True for exceptions to retry; None: retry no exceptions."""


class AsyncRetryStrategy(ABC):
    """Says whether and when to retry a request. All requests of a partition share it, so it must keep no state."""

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Return True if another attempt is allowed after `current_attempts`."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return how long to wait after attempt number `current_attempts` before the next one."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate:
        """Return which outcomes to retry."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy:
        """Never retry."""
        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> AsyncRetryStrategy:
        """Retry up to `max_attempts` times, always after the same time."""
        return FixedDelayRetryStrategy(max_attempts, backoff_time_millis, result_predicate, exception_predicate)

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> AsyncRetryStrategy:
        """Retry up to `max_attempts` times. Each wait is `multiplier` times the wait before it."""
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class RetryPredicate(AsyncRetryPredicate):
    """Two predicates as one object."""

    def __init__(
        self, result_predicate: ResultPredicate | None, exception_predicate: ExceptionPredicate | None
    ) -> None:
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> ResultPredicate | None:
        return self._result_predicate

    def exception_predicate(self) -> ExceptionPredicate | None:
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy):
    """Each request has one attempt."""

    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate:
        return RetryPredicate(None, None)


class FixedDelayRetryStrategy(AsyncRetryStrategy):
    """Retries after a fixed time, up to `max_attempts` times after the first attempt."""

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        self._max_attempts = _positive("max_attempts", max_attempts)
        self._backoff_ms = _positive("backoff_time_millis", backoff_time_millis)
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return int(self._backoff_ms)

    def get_retry_predicate(self) -> AsyncRetryPredicate:
        return self._predicate


class ExponentialBackoffDelayRetryStrategy(AsyncRetryStrategy):
    """Like `FixedDelayRetryStrategy`, but the time grows from `initial_delay` to at most `max_retry_delay`."""

    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        self._max_attempts = _positive("max_attempts", max_attempts)
        self._initial_ms = _positive("initial_delay", initial_delay)
        self._max_ms = _positive("max_retry_delay", max_retry_delay)
        self._multiplier = _positive("multiplier", multiplier)
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        # Computed from the number alone: requests share the strategy, and must not slow each other down.
        delay = self._initial_ms
        for _ in range(current_attempts - 1):
            delay = min(int(delay * self._multiplier), self._max_ms)
        return int(delay)

    def get_retry_predicate(self) -> AsyncRetryPredicate:
        return self._predicate


NO_RETRY_STRATEGY: AsyncRetryStrategy = NoRetryStrategy()


def _positive(name: str, number: float) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or number <= 0:
        raise ConfigurationError(f"retry strategy: {name} must be a number above zero, found {number!r}")
    return number
