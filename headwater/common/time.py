"""Amounts of time and points in time, as in pyflink.common.time, without a JVM behind them."""

from __future__ import annotations

import datetime
from typing import Any, TypeAlias

from headwater.common.errors import ConfigurationError

_NANOS_PER_MILLI = 1_000_000
_NANOS_PER_SECOND = 1_000_000_000


class Duration:
    """An immutable amount of time with nanosecond resolution; headwater itself counts in milliseconds."""

    __slots__ = ("_nanos",)

    def __init__(self, nanos: int) -> None:
        self._nanos = _whole(nanos, "nanos")

    @staticmethod
    def of_days(days: int) -> Duration:
        return Duration(_whole(days, "days") * 86_400 * _NANOS_PER_SECOND)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        return Duration(_whole(hours, "hours") * 3_600 * _NANOS_PER_SECOND)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        return Duration(_whole(minutes, "minutes") * 60 * _NANOS_PER_SECOND)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        return Duration(_whole(seconds, "seconds") * _NANOS_PER_SECOND)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        return Duration(_whole(millis, "millis") * _NANOS_PER_MILLI)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        return Duration(nanos)

    def to_millis(self) -> int:
        """Whole milliseconds, rounded towards minus infinity as java.time.Duration does."""
        return self._nanos // _NANOS_PER_MILLI

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self._nanos == other._nanos

    def __lt__(self, other: Duration) -> bool:
        return self._nanos < other._nanos if isinstance(other, Duration) else NotImplemented

    def __le__(self, other: Duration) -> bool:
        return self._nanos <= other._nanos if isinstance(other, Duration) else NotImplemented

    def __hash__(self) -> int:
        return hash((Duration, self._nanos))

    def __repr__(self) -> str:
        if self._nanos % _NANOS_PER_MILLI:
            return f"Duration.of_nanos({self._nanos})"
        return f"Duration.of_millis({self.to_millis()})"


class Instant:
    """A point on the time line: seconds since 1970-01-01T00:00:00Z and 0 <= nanos < 1e9 after them."""

    __slots__ = ("nanos", "seconds")

    def __init__(self, seconds: int, nanos: int) -> None:
        self.seconds = seconds
        self.nanos = nanos

    def to_epoch_milli(self) -> int:
        return self.seconds * 1000 + self.nanos // _NANOS_PER_MILLI

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        seconds, millis = divmod(epoch_milli, 1000)
        return Instant(seconds, millis * _NANOS_PER_MILLI)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instant) and (self.seconds, self.nanos) == (other.seconds, other.nanos)

    def __lt__(self, other: Instant) -> bool:
        if not isinstance(other, Instant):
            return NotImplemented
        return (self.seconds, self.nanos) < (other.seconds, other.nanos)

    def __hash__(self) -> int:
        return hash((Instant, self.seconds, self.nanos))

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


class Time:
    """An amount of time in milliseconds: what windows and TTL take in PyFlink."""

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = _whole(milliseconds, "milliseconds")

    def to_milliseconds(self) -> int:
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        return Time(_whole(seconds, "seconds") * 1000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        return Time(_whole(minutes, "minutes") * 60_000)

    @staticmethod
    def hours(hours: int) -> Time:
        return Time(_whole(hours, "hours") * 3_600_000)

    @staticmethod
    def days(days: int) -> Time:
        return Time(_whole(days, "days") * 86_400_000)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self._milliseconds == other._milliseconds

    def __hash__(self) -> int:
        return hash((Time, self._milliseconds))

    def __repr__(self) -> str:
        return f"Time.milliseconds({self._milliseconds})"

    def __str__(self) -> str:
        return f"{self._milliseconds} ms"


DurationLike: TypeAlias = Duration | Time | datetime.timedelta | int
"""What every method that takes a duration accepts; a plain int is milliseconds."""


def to_millis(duration: DurationLike, name: str = "duration", *, minimum: int | None = 0) -> int:
    """Whole milliseconds of anything that is a duration. `name` is the parameter that an error talks about.

    `minimum` is the least value allowed (None: any); a duration that is not a whole number of milliseconds is
    rounded down.
    """
    if isinstance(duration, Duration):
        millis = duration.to_millis()
    elif isinstance(duration, Time):
        millis = duration.to_milliseconds()
    elif isinstance(duration, datetime.timedelta):
        millis = duration // datetime.timedelta(milliseconds=1)
    elif isinstance(duration, int) and not isinstance(duration, bool):
        millis = duration
    else:
        raise ConfigurationError(
            f"{name}: expected a Duration, Time, datetime.timedelta or int milliseconds, "
            f"found {type(duration).__name__} {duration!r}; for example Duration.of_seconds(5)"
        )
    if minimum is not None and millis < minimum:
        raise ConfigurationError(f"{name}: expected at least {minimum} ms, found {millis} ms")
    return millis


def _whole(amount: Any, unit: str) -> int:
    if isinstance(amount, bool) or not isinstance(amount, int):
        raise ConfigurationError(
            f"expected a whole number of {unit}, found {type(amount).__name__} {amount!r}; "
            f"use a smaller unit for fractions, or datetime.timedelta"
        )
    return amount
