"""Java's patterns of dates and times (`yyyy-MM-dd HH:mm:ss.SSS`): write and read with them."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from headwater.common.errors import ComputationError

_MONTHS = tuple(calendar.month_name)
_DAYS = tuple(calendar.day_name)
_LETTERS = "yuMLdDHhKkmsSaEeQq"


@dataclass(frozen=True)
class Part:
    """A letter of the pattern and how often it stands, or literal text (letter is empty then)."""

    letter: str
    count: int
    text: str = ""


@lru_cache(maxsize=1000)
def parts_of(pattern: str) -> tuple[Part, ...]:
    """Take a pattern apart. ComputationError if it has a letter that is not known."""
    found: list[Part] = []
    for token in _tokens(pattern):
        if token[0] == "'":
            if len(token) < 2:
                raise ComputationError(f"the pattern '{pattern}' has a quote without an end")
            found.append(Part("", 0, token[1:-1].replace("''", "'") or "'"))
        elif token[0].isalpha() and token[0].isascii():
            if token[0] not in _LETTERS:
                raise ComputationError(f"the pattern '{pattern}' has the letter '{token[0]}'; known are {_LETTERS}")
            found.append(Part(token[0], len(token)))
        else:
            found.append(Part("", 0, token))
    return tuple(found)


def _tokens(pattern: str) -> list[str]:
    return [match.group() for match in re.finditer(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+|'", pattern)]


def write(pattern: str, value: datetime.datetime) -> str:
    """Format as Java's DateTimeFormatter does."""
    return "".join(
        part.text if not part.letter else _WRITERS[part.letter](value, part.count) for part in parts_of(pattern)
    )


def _number(get: Callable[[datetime.datetime], int]) -> Callable[[datetime.datetime, int], str]:
    return lambda value, count: str(get(value)).rjust(count, "0")


def _year(value: datetime.datetime, count: int) -> str:
    return f"{value.year % 100:02d}" if count == 2 else str(value.year).rjust(count, "0")


def _month(value: datetime.datetime, count: int) -> str:
    if count >= 3:
        return _MONTHS[value.month][: 3 if count == 3 else 1 if count == 5 else None]
    return str(value.month).rjust(count, "0")


def _day_name(value: datetime.datetime, count: int) -> str:
    return _DAYS[value.weekday()][: 3 if count <= 3 else 1 if count == 5 else None]


def _fraction(value: datetime.datetime, count: int) -> str:
    return f"{value.microsecond:06d}000"[:count]


_WRITERS: dict[str, Callable[[datetime.datetime, int], str]] = {
    "y": _year,
    "u": _year,
    "M": _month,
    "L": _month,
    "d": _number(lambda value: value.day),
    "D": _number(lambda value: value.timetuple().tm_yday),
    "H": _number(lambda value: value.hour),
    "h": _number(lambda value: (value.hour + 11) % 12 + 1),
    "K": _number(lambda value: value.hour % 12),
    "k": _number(lambda value: value.hour or 24),
    "m": _number(lambda value: value.minute),
    "s": _number(lambda value: value.second),
    "S": _fraction,
    "a": lambda value, count: "AM" if value.hour < 12 else "PM",
    "E": _day_name,
    "e": _number(lambda value: (value.weekday() + 1) % 7 + 1),
    "Q": _number(lambda value: (value.month - 1) // 3 + 1),
    "q": _number(lambda value: (value.month - 1) // 3 + 1),
}


@lru_cache(maxsize=1000)
def _reader(pattern: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    text, letters = [], []
    parts = parts_of(pattern)
    for at, part in enumerate(parts):
        if not part.letter:
            text.append(re.escape(part.text))
            continue
        adjacent = at + 1 < len(parts) and parts[at + 1].letter
        letters.append(part.letter if not (part.letter in "ML" and part.count >= 3) else "N")
        if (part.letter in "ML" and part.count >= 3) or part.letter in "aE":
            text.append("([A-Za-z]+)")
        elif part.letter in "yu" and part.count != 2:
            text.append(f"(\\d{{{part.count}}})" if adjacent or part.count == 4 else "(\\d{1,9})")
        elif part.count == 1 and not adjacent:
            text.append("(\\d{1,2})")
        else:
            text.append(f"(\\d{{{part.count}}})")
    return re.compile("".join(text)), tuple(letters)


def read(pattern: str, text: str, more: bool = False) -> datetime.datetime | None:
    """Parse as Java's DateTimeFormatter does; what the pattern lacks is that of 1970-01-01 00:00. None if malformed.

    `more`: text behind what the pattern says is ignored.
    """
    regular, letters = _reader(pattern)
    match = regular.match(text) if more else regular.fullmatch(text)
    if match is None:
        return None
    fields: dict[str, int] = {}
    for letter, value in zip(letters, match.groups(), strict=True):
        number = _field(letter, value)
        if number is None:
            return None
        fields["y" if letter == "u" else "M" if letter in "LN" else letter] = number
    hour = fields.get("H", fields.get("k", 0) % 24)
    if "h" in fields or "K" in fields:
        hour = fields.get("h", fields.get("K", 0)) % 12 + 12 * fields.get("a", 0)
    year = fields.get("y", 1970)
    try:
        year += 2000 if any(part.letter in "yu" and part.count == 2 for part in parts_of(pattern)) else 0
        month, day = fields.get("M", 1), fields.get("d", 1)
        if 1 <= month <= 12 and day <= 31:
            day = min(day, calendar.monthrange(year, month)[1])
        micros = fields.get("S", 0)
        return datetime.datetime(year, month, day, hour, fields.get("m", 0), fields.get("s", 0), micros)
    except ValueError:
        return None


def _field(letter: str, value: str) -> int | None:
    if letter == "N":
        return next((at for at, name in enumerate(_MONTHS) if name and name[: len(value)] == value), None)
    if letter == "a":
        return {"AM": 0, "PM": 1}.get(value.upper())
    if letter == "E":
        return 0
    if letter == "S":
        return int((value + "000000")[:6])
    return int(value)


SLICES = {"yyyy": (0, 4), "MM": (5, 7), "dd": (8, 10), "HH": (11, 13), "mm": (14, 16), "ss": (17, 19), "SSS": (20, 23)}
"""Where the parts of usual patterns are in ISO text."""


def slices_of(pattern: str) -> list[tuple[int, int] | str] | None:
    """The pattern as slices of ISO text and literals, or None if it needs more than that."""
    found: list[tuple[int, int] | str] = []
    for part in parts_of(pattern):
        if not part.letter:
            found.append(part.text)
            continue
        place = SLICES.get(part.letter * part.count)
        if place is None:
            return None
        if found and isinstance(found[-1], tuple) and found[-1][1] == place[0]:
            found[-1] = (found[-1][0], place[1])
        else:
            found.append(place)
    return found
