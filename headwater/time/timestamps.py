"""Which timestamps can be used. One bad timestamp must not push the watermark past all data."""

from __future__ import annotations

import numbers
import operator
from typing import Any

from headwater.common.ids import MAX_WATERMARK

DEFAULT_MAX_AHEAD_MS = 365 * 24 * 60 * 60 * 1000


def latest_usable(now_ms: int, max_ahead_ms: int) -> int:
    """The largest timestamp that is accepted at processing time `now_ms`; 0 or less means that no clock is set."""
    return now_ms + max_ahead_ms if now_ms > 0 else MAX_WATERMARK - 1


def are_plain(timestamps: list[Any], latest: int) -> bool:
    """Return True if all `timestamps` are usable ints. The fast path: a few C loops over a batch."""
    return not timestamps or (
        set(map(type, timestamps)) == {int} and min(timestamps) >= 0 and max(timestamps) <= latest
    )


def to_timestamp(found: Any, latest: int) -> int | None:
    """`found` as a usable timestamp; None if it is not one (see `problem_with`)."""
    if isinstance(found, bool):
        return None
    try:
        whole = operator.index(found)
    except TypeError:
        if not isinstance(found, numbers.Real) or not float(found).is_integer():
            return None
        whole = int(float(found))
    return whole if 0 <= whole <= latest else None


def problem_with(found: Any, latest: int, now_ms: int) -> str:
    """Says in words why `found` is not a usable timestamp."""
    if found is None:
        return "is None"
    if isinstance(found, bool) or not isinstance(found, numbers.Real):
        return f"is a {type(found).__name__}, not a whole number of milliseconds"
    if not float(found).is_integer():
        return "is not a whole number of milliseconds"
    whole = int(float(found))
    if whole < 0:
        return "is negative"
    if whole > latest:
        days_ahead = (whole - now_ms) // 86_400_000
        hint = "; is it in microseconds or nanoseconds?" if days_ahead > 36_500 else ""
        return f"is {days_ahead:,} days ahead of the processing time {now_ms}{hint}"
    raise AssertionError(f"{found!r} is a usable timestamp")
