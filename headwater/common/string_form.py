"""Text of records as `print()` shows it.

PyFlink has two ways to turn a record into text, and programs (and their tests) see the difference:

* A stream **with a declared type** goes through Java: `(a,1)` for a tuple, `+I[a, 1]` for a row, `[1, 2]`, `{k=1.5}`,
  `true`, `null`, `1.0E20`. That is `to_flink_string`.
* A stream **without one** holds Python objects and shows `str(value)`: `('a', 1)`, `True`, `1e+20`. That is
  `to_python_string`.

`string_form_for(type_info)` picks. Two places are made regular on purpose: a row always shows as `+I[a, 1]`, where
PyFlink 2.3 shows `+I[a,1]`, `+I[a, 1]` or `<Row('a', 1)>` depending on where the row stands; and arrays show their
elements like lists, where Java shows an address in memory.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from headwater.common.time import Instant
from headwater.common.type_system.information import PickledBytesTypeInfo, TypeInformation
from headwater.common.types import Row


def string_form_for(type_info: TypeInformation | None) -> Callable[[Any], str]:
    """Return the function that turns records of a stream with declared `type_info` into text."""
    if type_info is None or isinstance(type_info, PickledBytesTypeInfo):
        return to_python_string
    return to_flink_string


def to_python_string(value: Any) -> str:
    """The text of a record of a stream without declared type."""
    if type(value) is str:
        return value
    return to_flink_string(value) if isinstance(value, Row) else str(value)


def to_flink_string(value: Any) -> str:
    """The text of a value in Java's spelling, at any depth."""
    form = _FORMS.get(type(value))
    if form is not None:
        return form(value)
    for base, base_form in _FORMS.items():
        if isinstance(value, base):
            return base_form(value)
    return str(value)


def _row(row: Row) -> str:
    return f"{row.get_row_kind()}[{', '.join(map(to_flink_string, row))}]"


def _tuple(items: tuple[Any, ...]) -> str:
    return f"({','.join(map(to_flink_string, items))})"


def _list(items: list[Any]) -> str:
    return f"[{', '.join(map(to_flink_string, items))}]"


def _map(entries: Mapping[Any, Any]) -> str:
    pairs = (f"{to_flink_string(key)}={to_flink_string(value)}" for key, value in entries.items())
    return "{" + ", ".join(pairs) + "}"


def _bytes(data: bytes | bytearray) -> str:
    """Java's bytes have a sign."""
    return _list([byte - 256 if byte > 127 else byte for byte in data])


def _float(number: float) -> str:
    """Java writes 0.001 <= |x| < 10,000,000 plainly and everything else as 1.0E7."""
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(float(number))
    digits, exponent = _scientific(abs(number))
    sign = "-" if number < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _scientific(number: float) -> tuple[str, int]:
    """Return the shortest digits that read back as `number`, and the power of ten of the first digit."""
    mantissa, _, power = repr(float(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading_zeros = len(whole + fraction) - len(digits)
    exponent = int(power or 0) + len(whole) - 1 - leading_zeros
    return digits.rstrip("0") or "0", exponent


def _datetime(moment: datetime.datetime) -> str:
    """As java.sql.Timestamp: at least one digit after the second."""
    fraction = f"{moment.microsecond:06d}".rstrip("0") or "0"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{fraction}"


def _instant(instant: Instant) -> str:
    """ISO 8601 in UTC, the fraction in groups of three digits, as java.time.Instant."""
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=instant.seconds)
    fraction = f"{instant.nanos:09d}"
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    return f"{moment:%Y-%m-%dT%H:%M:%S}{'.' if fraction else ''}{fraction}Z"


# Looked up by exact type first, then in this order by isinstance: bool before int, datetime before date.
_FORMS: dict[type, Callable[[Any], str]] = {
    str: str,
    bool: lambda value: "true" if value else "false",
    int: str,
    float: _float,
    type(None): lambda _: "null",
    Row: _row,
    tuple: _tuple,
    list: _list,
    dict: _map,
    bytes: _bytes,
    bytearray: _bytes,
    datetime.datetime: _datetime,
    datetime.date: str,
    datetime.time: lambda value: value.strftime("%H:%M:%S"),
    Instant: _instant,
}
