"""Which directory below a file sink's base path a record goes to."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

from headwater.common.errors import ConfigurationError

__all__ = ["BucketAssigner"]

_PATTERN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_LETTERS: Final = {"yyyy": "%Y", "uuuu": "%Y", "yy": "%y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


class BucketAssigner(ABC):
    """Names the bucket, a relative directory, of each record. Pickled to the tasks."""

    @abstractmethod
    def get_bucket_id(self, value: Any, timestamp: int | None) -> str:
        """The bucket of `value`: a relative path such as `country=se/2026-02`; "" is the base path itself."""

    def bucket_of_all(self) -> str | None:
        """The bucket of all records of an epoch, where it does not depend on the record; otherwise None."""
        return None

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """No buckets: all files are in the base path."""
        return _BasePath()

    @staticmethod
    def date_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> BucketAssigner:
        """By the wall clock at the time at which the sink begins to write an epoch.

        :param format_str: a pattern of Java's DateTimeFormatter with y, M, d, H, m, s and quoted text.
        :param timezone_id: `Europe/Stockholm` or `GMT-08:00`; None is the system's own.
        """
        return _DateTime(format_str, timezone_id)

    @staticmethod
    def event_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str = "UTC") -> BucketAssigner:
        """By each record's own timestamp, so that a replay puts it into the same bucket."""
        return _EventTime(format_str, timezone_id)

    @staticmethod
    def of(function: Callable[[Any], str]) -> BucketAssigner:
        """By a function of the record."""
        return _ByFunction(function)


class _BasePath(BucketAssigner):
    def get_bucket_id(self, value: Any, timestamp: int | None) -> str:
        return ""

    def bucket_of_all(self) -> str | None:
        return ""


class _DateTime(BucketAssigner):
    def __init__(self, format_str: str, timezone_id: str | None) -> None:
        self._format = _strftime_format(format_str)
        _timezone(timezone_id)  # a wrong name fails here, in the program, and not in a task
        self._timezone_id = timezone_id

    def get_bucket_id(self, value: Any, timestamp: int | None) -> str:
        return self._format_time(time.time())

    def bucket_of_all(self) -> str | None:
        return self._format_time(time.time())

    def _format_time(self, seconds: float) -> str:
        return datetime.fromtimestamp(seconds, UTC).astimezone(_timezone(self._timezone_id)).strftime(self._format)


class _EventTime(_DateTime):
    def get_bucket_id(self, value: Any, timestamp: int | None) -> str:
        if timestamp is None:
            raise ConfigurationError(
                "event_time_bucket_assigner got a record without a timestamp; call assign_timestamps_and_watermarks "
                "before the sink, or use another assigner"
            )
        return self._format_time(timestamp / 1000)

    def bucket_of_all(self) -> str | None:
        return None


class _ByFunction(BucketAssigner):
    def __init__(self, function: Callable[[Any], str]) -> None:
        self._function = function

    def get_bucket_id(self, value: Any, timestamp: int | None) -> str:
        return self._function(value)


def _strftime_format(pattern: str) -> str:
    """A Java date pattern as one of `strftime`."""
    parts: list[str] = []
    end = 0
    for match in _PATTERN.finditer(pattern):
        if match.start() != end:
            break
        end = match.end()
        text = match[0]
        if match[1] is not None:
            parts.append((match[1].replace("''", "'") or "'").replace("%", "%%"))
        elif match[2] is None:
            parts.append(text.replace("%", "%%"))
        elif text in _LETTERS:
            parts.append(_LETTERS[text])
        else:
            raise ConfigurationError(
                f"date pattern {pattern!r} has {text!r}; expected {', '.join(_LETTERS)} and text in single quotes"
            )
    if end != len(pattern):
        raise ConfigurationError(f"date pattern {pattern!r} has a single quote without its partner")
    return "".join(parts)


def _timezone(timezone_id: str | None) -> tzinfo | None:
    if timezone_id is None:
        return None
    offset = re.fullmatch(r"(?:GMT|UTC)?([+-])(\d{1,2}):?(\d{2})?", timezone_id)
    if offset:
        sign = -1 if offset[1] == "-" else 1
        return timezone(sign * timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0)))
    try:
        return ZoneInfo(timezone_id)
    except (KeyError, ValueError, OSError):
        raise ConfigurationError(
            f"time zone {timezone_id!r} is unknown; expected a name such as 'Europe/Stockholm' or 'GMT-08:00'"
        ) from None
