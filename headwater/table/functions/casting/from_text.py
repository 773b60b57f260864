"""Read values from text as Flink's CAST does. Each function raises ValueError for text that is not one."""

from __future__ import annotations

import calendar
import datetime
import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

_INTEGER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
_TRUE = ("t", "true", "y", "yes", "1")
_FALSE = ("f", "false", "n", "no", "0")
_FLOATING = re.compile(r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DATE = re.compile(r"(\d{1,4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?", re.ASCII)
_TIME = re.compile(r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?", re.ASCII)

EPOCH = datetime.date(1970, 1, 1)
US_PER_SECOND = 1_000_000
US_PER_DAY = 86_400 * US_PER_SECOND
EXACT = Context(prec=100)


def read_integer(text: str, bits: int) -> int:
    """A fraction is cut off: '12.7' is 12."""
    trimmed = text.strip(" ")
    if not _INTEGER.fullmatch(trimmed):
        raise ValueError(f"'{text}' is no integer")
    value = int(trimmed.split(".")[0] or "0") if trimmed.split(".")[0] not in ("+", "-") else 0
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(f"'{text}' does not fit into {bits} bits")
    return value


def read_boolean(text: str) -> bool:
    word = text.lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"'{text}' is no boolean")


def read_floating(text: str) -> float:
    trimmed = text.strip()
    if trimmed.lstrip("+-")[:2].lower() == "0x" and "p" in trimmed.lower():
        return float.fromhex(trimmed)
    if not _FLOATING.fullmatch(trimmed):
        raise ValueError(f"'{text}' is no number")
    return float(trimmed.rstrip("fFdD") if trimmed[-1] in "fFdD" else trimmed)


def read_decimal(text: str, precision: int, scale: int) -> Decimal | None:
    """Round half up to the scale. None if it has more than `precision` digits then."""
    trimmed = text.strip(" ")
    if not _DECIMAL.fullmatch(trimmed):
        raise ValueError(f"'{text}' is no number")
    try:
        return fit_decimal(Decimal(trimmed), precision, scale)
    except InvalidOperation:
        raise ValueError(f"'{text}' is too large a number") from None


def fit_decimal(value: Decimal, precision: int, scale: int) -> Decimal | None:
    """Round half up to the scale; None if that needs more than `precision` digits."""
    if value.adjusted() >= precision - scale + 1:
        return None
    rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT)
    return rounded if abs(rounded) < Decimal(10) ** (precision - scale) else None


def read_date(text: str) -> int:
    """Days since 1970-01-01. Month and day may be left out; a time of day behind it is ignored."""
    trimmed = text.strip()
    found = _DATE.match(trimmed)
    rest = trimmed[found.end() :] if found else ""
    if found is None or (rest and (rest[0] not in " T" or found.group(3) is None)):
        raise ValueError(f"'{text}' is no date")
    return _days(text, int(found.group(1)), int(found.group(2) or 1), int(found.group(3) or 1))


def _days(text: str, year: int, month: int, day: int) -> int:
    try:
        return (datetime.date(year, month, day) - EPOCH).days
    except ValueError:
        raise ValueError(f"'{text}' is no date of the calendar") from None


def read_time_ms(text: str) -> int:
    """Milliseconds of the day. Minutes and seconds may be left out."""
    return _time_us(text, text.strip()) // 1000


def _time_us(whole: str, text: str) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"'{whole}' is no time of day")
    hours, minutes, seconds = (int(found.group(at) or 0) for at in (1, 2, 3))
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError(f"'{whole}' is no time of day")
    fraction = int(((found.group(4) or "") + "000000")[:6])
    return ((hours * 60 + minutes) * 60 + seconds) * US_PER_SECOND + fraction


def read_timestamp_us(text: str, precision: int) -> int:
    """Microseconds since 1970-01-01 00:00 of no zone, cut to `precision` digits. A date alone is its midnight.

    The 31st of a shorter month is its last day.
    """
    date, _, time = text.strip().partition(" ")
    found = _DATE.fullmatch(date)
    if found is None or found.group(3) is None or (time and time.count(":") != 2):
        raise ValueError(f"'{text}' is no timestamp; expected it as 'yyyy-MM-dd HH:mm:ss[.fraction]'")
    year, month, day = (int(found.group(at)) for at in (1, 2, 3))
    if year >= 1 and 1 <= month <= 12 and day <= 31:
        day = min(day, calendar.monthrange(year, month)[1])
    micros = _days(text, year, month, day) * US_PER_DAY + (_time_us(text, time) if time else 0)
    unit: int = 10 ** max(0, 6 - precision)
    return micros // unit * unit
