"""Constants of SQL text: their values and Flink's types for them."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal

from headwater.table.parser.ast import expressions as ast
from headwater.table.parser.ast.base import Expression
from headwater.table.plan.expressions import Literal
from headwater.table.types import logical as t

_PLACES = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_MILLISECONDS = {"WEEK": 604_800_000, "DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1_000}
_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")


class BadLiteral(ValueError):
    """The text of a constant is not what its kind needs."""


def literal(node: Expression) -> Literal | None:
    """The constant that `node` is, or None if it is none. Raises BadLiteral."""
    match node:
        case ast.Number():
            return number(node)
        case ast.Text():
            return Literal(t.CharType(length=len(node.value), nullable=False), node.value, span=node.span)
        case ast.Binary():
            value = bytes.fromhex(node.digits)
            return Literal(t.BinaryType(length=len(value), nullable=False), value, span=node.span)
        case ast.Boolean():
            return Literal(t.BOOLEAN.not_null(), node.value, span=node.span)
        case ast.Null():
            return Literal(t.NULL, None, span=node.span)
        case ast.Temporal():
            return temporal(node)
        case ast.Interval():
            return interval(node)
        case ast.Symbol():
            return Literal(t.CharType(length=len(node.word), nullable=False), node.word, span=node.span)
    return None


def number(node: ast.Number) -> Literal:
    text = node.text
    if re.search("[eE]", text):
        return Literal(t.DOUBLE.not_null(), float(text), span=node.span)
    if "." not in text:
        value = int(text)
        if -(2**31) <= value < 2**31:
            return Literal(t.INT.not_null(), value, span=node.span)
        if -(2**63) <= value < 2**63:
            return Literal(t.BIGINT.not_null(), value, span=node.span)
    exact = Decimal(text)
    whole, _, fraction = text.lstrip("-").partition(".")
    precision = max(len(whole) + len(fraction), 1)  # Flink counts every digit that was written: 0.908 has four
    if precision > t.MAX_DECIMAL_PRECISION:
        raise BadLiteral(f"{text} has more than {t.MAX_DECIMAL_PRECISION} digits")
    type_ = t.DecimalType(precision=precision, scale=len(fraction), nullable=False)
    return Literal(type_, exact, span=node.span)


def temporal(node: ast.Temporal) -> Literal:
    text = node.text.strip()
    try:
        if node.kind == "DATE":
            return Literal(t.DATE.not_null(), datetime.date.fromisoformat(text), span=node.span)
        if node.kind == "TIME":
            time = datetime.time.fromisoformat(_micros(text))
            return Literal(t.TimeType(precision=0, nullable=False), time, span=node.span)
        if not re.match(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(\.\d{1,9})?$", text):
            raise ValueError
        digits = len(text.partition(".")[2])
        moment = datetime.datetime.fromisoformat(_micros(text))
        return Literal(t.TimestampType(precision=digits, nullable=False), moment, span=node.span)
    except ValueError:
        shapes = {"DATE": "2020-12-31", "TIME": "23:59:59.123"}
        shape = shapes.get(node.kind, "2020-12-31 23:59:59.123")
        raise BadLiteral(f"'{node.text}' is no {node.kind}; write it as {node.kind} '{shape}'") from None


def _micros(text: str) -> str:
    """Python reads three or six digits after the second."""
    whole, point, fraction = text.partition(".")
    return f"{whole}.{fraction[:6]:0<6}" if point else whole


def interval(node: ast.Interval) -> Literal:
    text = node.text.strip()
    negative = node.negative
    if text.startswith(("-", "+")):
        negative ^= text.startswith("-")
        text = text[1:]
    precision = "" if node.precision is None else f"({node.precision})"
    resolution = node.unit + precision
    if node.until is not None:
        resolution += f" TO {node.until}" + (f"({node.until_precision})" if node.until_precision is not None else "")
    if node.unit in _PLACES:
        months = _months(node, text)
        resolution = "YEAR TO MONTH" if node.unit == "QUARTER" else resolution
        kind = t.YearMonthIntervalType(resolution=resolution, nullable=False)
        return Literal(kind, -months if negative else months, span=node.span)
    milliseconds = _milliseconds(node, text)
    length = datetime.timedelta(milliseconds=-milliseconds if negative else milliseconds)
    resolution = "DAY" if node.unit == "WEEK" else resolution
    return Literal(t.DayTimeIntervalType(resolution=resolution, nullable=False), length, span=node.span)


def _months(node: ast.Interval, text: str) -> int:
    if node.until == "MONTH" and node.unit == "YEAR":
        match = re.fullmatch(r"(\d+)-(\d{1,2})", text)
        if match:
            return int(match.group(1)) * 12 + int(match.group(2))
    elif node.until is None and text.isdigit():
        return int(text) * _PLACES[node.unit]
    raise _bad_interval(node)


def _milliseconds(node: ast.Interval, text: str) -> int:
    units = [node.unit]
    if node.until is not None:
        if node.until not in _UNITS or node.unit not in _UNITS or _UNITS.index(node.until) <= _UNITS.index(node.unit):
            raise _bad_interval(node)
        units = list(_UNITS[_UNITS.index(node.unit) : _UNITS.index(node.until) + 1])
    shape = ""
    for at, unit in enumerate(units):
        shape += "" if at == 0 else r"\s+" if units[at - 1] == "DAY" else ":"
        shape += r"(\d+(?:\.\d{1,9})?)" if unit == "SECOND" else r"(\d+)"
    match = re.fullmatch(shape, text)
    if match is None:
        raise _bad_interval(node)
    parts = (Decimal(part) * _MILLISECONDS[unit] for part, unit in zip(match.groups(), units, strict=True))
    return int(sum(parts))


def _bad_interval(node: ast.Interval) -> BadLiteral:
    unit = node.unit if node.until is None else f"{node.unit} TO {node.until}"
    examples = {
        "YEAR TO MONTH": "1-6",
        "DAY TO SECOND": "1 12:30:15.5",
        "DAY TO HOUR": "1 12",
        "DAY TO MINUTE": "1 12:30",
        "HOUR TO MINUTE": "12:30",
        "HOUR TO SECOND": "12:30:15",
        "MINUTE TO SECOND": "30:15",
    }
    return BadLiteral(f"'{node.text}' is no interval; write it as INTERVAL '{examples.get(unit, '10')}' {unit}")
