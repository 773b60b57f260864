"""Write values as text as Flink's CAST to STRING does."""

from __future__ import annotations

import math

import numpy as np

_SCIENTIFIC_FROM = 1e7
_SCIENTIFIC_BELOW = 1e-3


def write_floating(value: float, single: bool = False) -> str:
    """As Java does: at least one digit after the point, an exponent from 1E7 on and below 1E-3."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    plain = _SCIENTIFIC_BELOW <= abs(value) < _SCIENTIFIC_FROM
    number = np.float32(value) if single else np.float64(value)
    if plain:
        return np.format_float_positional(number, unique=True, trim="0")
    mantissa, exponent = np.format_float_scientific(number, unique=True, trim="0", exp_digits=1).split("e")
    return f"{mantissa}E{int(exponent)}"


def write_months(months: int) -> str:
    """`+1-02` for a year and two months."""
    years, rest = divmod(abs(months), 12)
    return f"{'-' if months < 0 else '+'}{years}-{rest:02d}"


def write_duration_us(micros: int) -> str:
    """`+1 02:03:04.567`"""
    millis = abs(micros) // 1000
    seconds, millis = divmod(millis, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{'-' if micros < 0 else '+'}{days} {hours:02d}:{minutes:02d}:{seconds:02d}.{millis:03d}"
