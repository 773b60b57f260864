"""Which directory below a file sink's base path a record goes to."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

from headwater.common.errors import ConfigurationError, SerializationError, short_repr

__all__ = ["BucketAssigner"]

_PATTERN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_LETTERS: Final = {"yyyy": "%Y", "uuuu": "%Y", "yy": "%y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


class BucketAssigner(ABC):
    """Names the bucket, a relative directory, of each record. Pickled to the tasks."""

    @abstractmethod
    def get_bucket_id(self, value: Any, timestamp: int | None) -> str:
        """The bucket of `value`: a relative path such as `country=se/2026-02`; "" is the base path itself."""

    def bucket_of_all(self, now_ms: int) -> str | None:
        """The bucket of all records of an epoch, where it does not depend on the record; otherwise None.

        :param now_ms: the epoch's processing time. A replayed epoch has the same.
        """
        return None

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """No buckets: all files are in the base path."""
        return _BasePath()

    @staticmethod
    def date_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> BucketAssigner:
        """By the epoch's processing time, so that a replay puts records into the same bucket.

        :param format_str: a pattern of Java's DateTimeFormatter with y, M, d, H, m, s and quoted text.
        :param timezone_id: `Europe/Stockholm` or `GMT-08:00`; None is the system's own.
        """
        return _DateTime(format_str, timezone_id)

    @staticmethod
    def event_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str = "UTC") -> BucketAssigner:
        """By each record's own timestamp, so that a replay puts it into the same bucket."""
        return _EventTime(format_str, timezone_id)

    @staticmethod
    def by_fields(*fields: str) -> BucketAssigner:
        """By fields of the record (a dict, or a Row with names), named as Hive and Spark do: `country=se/day=3`."""
        if not fields or not all(isinstance(field, str) and field for field in fields):
            raise ConfigurationError(f"by_fields got {list(fields)}; expected names of fields")
        return _ByFields(fields)

    @staticmethod
    def of(function: Callable[[Any], str]) -> BucketAssigner:
        """By a function of the record."""
        return _ByFunction(function)


class _BasePath(BucketAssigner):
    def get_bucket_id(self, value: Any, timestamp: int | None) -> str:
        return ""

    def bucket_of_all(self, now_ms: int) -> str | None:
        return ""


class _DateTime(BucketAssigner):
    def __init__(self, format_str: str, timezone_id: str | None) -> None:
        self._format = strftime_format(format_str)
        _timezone(timezone_id)  # a wrong name fails here, in the program, and not in a task
        self._timezone_id = timezone_id

    def get_bucket_id(self, value: Any, timestamp: int | None) -> str:
        return self._format_time(time.time())

    def bucket_of_all(self, now_ms: int) -> str | None:
        return self._format_time(now_ms / 1000)

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

    def bucket_of_all(self, now_ms: int) -> str | None:
        return None


class _ByFunction(BucketAssigner):
    def __init__(self, function: Callable[[Any], str]) -> None:
        self._function = function

    def get_bucket_id(self, value: Any, timestamp: int | None) -> str:
        return self._function(value)


class _ByFields(BucketAssigner):
    def __init__(self, fields: tuple[str, ...]) -> None:
        self._fields = fields

    def get_bucket_id(self, value: Any, timestamp: int | None) -> str:
        try:
            return "/".join(f"{field}={_escaped(value[field])}" for field in self._fields)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise SerializationError(
                f"record {short_repr(value)} has no fields {list(self._fields)}, which its bucket is made of: {error}"
            ) from error


def _escaped(value: Any) -> str:
    """A value as part of a path. None and "" are what Hive calls them."""
    text = "" if value is None else str(value)
    return quote(text, safe=" !$&'()+,;@_-.~") if text else "__HIVE_DEFAULT_PARTITION__"


def strftime_format(pattern: str) -> str:
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
