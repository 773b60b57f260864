"""When a window ends, on the clock of watermarks.

Bounds of windows are TIMESTAMP: local times of the session's zone if the time attribute is TIMESTAMP_LTZ (`zoned`),
else the times that rows have, which watermarks count as if they were UTC.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import cache
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_EPOCH = datetime.datetime(1970, 1, 1)


def clock_of(zone: str, zoned: bool) -> Callable[[int], int]:
    """Make the function from a bound in microseconds to milliseconds of a watermark.

    A local time that comes twice, when clocks go back, means the second one: the window has all its rows then.
    """
    if not zoned or zone == "UTC":
        return lambda local_us: local_us // 1000

    place = ZoneInfo(zone)

    @cache
    def instant_ms(local_us: int) -> int:
        local = (_EPOCH + datetime.timedelta(microseconds=local_us)).replace(tzinfo=place, fold=1)
        return round(local.timestamp() * 1000)

    return instant_ms


def last_ms(ends_us: np.ndarray, zone: str, zoned: bool) -> np.ndarray:
    """The last millisecond of each window, as `clock_of` finds it. Windows have few different ends."""
    if not zoned or zone == "UTC":
        return ends_us // 1000 - 1
    instant_ms = clock_of(zone, zoned)
    known: np.ndarray = np.sort(ends_us)
    known = known[np.diff(known, prepend=known[:1] - 1) != 0]
    lasts = np.fromiter((instant_ms(end) - 1 for end in known.tolist()), np.int64, len(known))
    return lasts[np.searchsorted(known, ends_us)]


def local_ms(times: pa.Array, zone: str) -> np.ndarray:
    """Times of a time attribute in milliseconds, those of TIMESTAMP_LTZ as local times. There must be no NULL."""
    if times.type.tz is not None:
        times = pc.local_timestamp(times.cast(pa.timestamp(times.type.unit, zone)))
    return np.asarray(pc.floor_temporal(times, unit="millisecond").cast(pa.timestamp("ms")).cast(pa.int64()))


def time_ms(times: pa.Array) -> np.ndarray:
    """Times of a time attribute on the clock of watermarks, in milliseconds. There must be no NULL."""
    divisor = {"us": 1_000, "ns": 1_000_000}[times.type.unit]
    found: np.ndarray = np.asarray(times.cast(pa.int64())) // divisor
    return found


def timestamps(milliseconds: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Milliseconds as a column of TIMESTAMP."""
    factor = {"us": 1_000, "ns": 1_000_000}[kind.unit]
    return pa.array(milliseconds * factor, pa.int64()).view(kind)
