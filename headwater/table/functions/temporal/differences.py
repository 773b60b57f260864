"""TIMESTAMPADD and TIMESTAMPDIFF: counting in units."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.common.errors import FunctionTypeError
from headwater.table.functions import time_arithmetic
from headwater.table.functions.arguments import to_parameter
from headwater.table.functions.casting.spark import interval_micros
from headwater.table.functions.definition import Binding, BoundArgument, Column, FunctionDefinition, Signature
from headwater.table.functions.frame import Frame
from headwater.table.functions.kernels import as_array
from headwater.table.functions.signatures import INT64, TEMPORAL, call
from headwater.table.functions.temporal import FAMILY
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType, TypeRoot

_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_MICROS = {
    "WEEK": 7 * 86_400_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
}
_UNITS = (*_MONTHS, *_MICROS)


def _unit(argument: BoundArgument) -> str:
    word = argument.literal.upper() if isinstance(argument.literal, str) else ""
    word = word.removeprefix("SQL_TSI_")
    if word not in _UNITS:
        raise FunctionTypeError(f"'{argument.literal}' is no unit of time here; known are {', '.join(_UNITS)}")
    return word


def _bind_add(arguments: Sequence[BoundArgument]) -> Signature:
    if len(arguments) != 3:
        raise FunctionTypeError(f"takes a unit, a number and a time, found {len(arguments)} arguments")
    unit = _unit(arguments[0])
    found = call(INT64, TEMPORAL, result=t.BIGINT)(arguments[1:])
    kind = found.arguments[1]
    if kind.root is TypeRoot.DATE and _MICROS.get(unit, 1 << 60) < _MICROS["DAY"]:
        kind = t.TimestampType(precision=6)
    kind = kind.with_nullable(found.result.nullable)
    return Signature(kind, (arguments[0].type, found.arguments[0], kind.with_nullable(found.arguments[1].nullable)))


def _add(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    unit = _unit(binding.arguments[0])
    counts, values = as_array(columns[1], frame.rows), as_array(columns[2], frame.rows)
    kind = binding.arg_types[2]
    if unit in _MONTHS:
        months = pc.multiply(counts, _MONTHS[unit]).cast(pa.int32())
        return time_arithmetic.add_months(values, months, kind, frame.zone)
    amount = pc.multiply(counts, _MICROS[unit]).cast(pa.duration("us"))
    return time_arithmetic.add_duration(values, amount, kind)


def _spark_add(arguments: Sequence[str], binding: Binding) -> str | None:
    unit, kind = _unit(binding.arguments[0]), binding.arg_types[2]
    if kind.root is TypeRoot.TIME or (unit in _MONTHS and kind.root is TypeRoot.TIMESTAMP_LTZ):
        return None
    _, count, value = arguments
    if unit in _MONTHS:
        moved = f"({value} + make_ym_interval(0, CAST({count} * {_MONTHS[unit]} AS INT)))"
        return f"CAST({moved} AS DATE)" if kind.root is TypeRoot.DATE else moved
    if kind.root is TypeRoot.DATE:
        return f"date_add({value}, CAST({count} * {_MICROS[unit] // _MICROS['DAY']} AS INT))"
    if kind.root is TypeRoot.TIMESTAMP_LTZ:
        return f"timestamp_micros(unix_micros({value}) + {count} * {_MICROS[unit]})"
    return f"({value} + make_dt_interval(0, 0, 0, CAST({count} AS DECIMAL(18,0)) * {_MICROS[unit] // 1_000_000}))"


def _bind_difference(arguments: Sequence[BoundArgument]) -> Signature:
    if len(arguments) != 3:
        raise FunctionTypeError(f"takes a unit and two times, found {len(arguments)} arguments")
    _unit(arguments[0])
    found = call(TEMPORAL, TEMPORAL, result=t.INT)(arguments[1:])
    kinds = tuple(_comparable(each) for each in found.arguments)
    if TypeRoot.TIMESTAMP_LTZ in {each.root for each in kinds}:
        kinds = tuple(t.LocalZonedTimestampType(precision=6, nullable=each.nullable) for each in kinds)
    return Signature(found.result, (arguments[0].type, *kinds))


def _comparable(kind: LogicalType) -> LogicalType:
    if kind.root is TypeRoot.TIME:
        raise FunctionTypeError(f"TIMESTAMPDIFF does not take {kind.sql()}")
    return t.TimestampType(precision=6, nullable=kind.nullable) if kind.root is TypeRoot.DATE else kind


def _months_between(start: datetime.datetime, end: datetime.datetime) -> int:
    """Whole months between the dates; one less if that leads to the end's date at a later time of day."""
    first, last = start.date(), end.date()
    months = -_whole_months(last, first) if last < first else _whole_months(first, last)
    same_date = time_arithmetic.add_to_date(first, months) == last
    return months - 1 if same_date and end.time() < start.time() else months


def _whole_months(start: datetime.date, end: datetime.date) -> int:
    months = (end.year - start.year) * 12 + end.month - start.month
    return months - 1 if time_arithmetic.add_to_date(start, months) > end else months


def _difference(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    unit = _unit(binding.arguments[0])
    kinds = binding.arg_types[1:]
    wide = t.TimestampType(precision=6)
    start, end = (
        as_array(_as_timestamp(column, kind, wide, frame), frame.rows)
        for column, kind in zip(columns[1:], kinds, strict=True)
    )
    if unit in _MONTHS:
        pairs: Any = zip(start.to_pylist(), end.to_pylist(), strict=True)
        months = [None if one is None or other is None else _months_between(one, other) for one, other in pairs]
        return pa.array([None if each is None else int(each / _MONTHS[unit]) for each in months], pa.int32())
    gap = pc.subtract(end.cast(pa.int64()), start.cast(pa.int64()))
    return pc.divide(gap, _MICROS[unit]).cast(pa.int32(), safe=False)


def _as_timestamp(column: Column, kind: LogicalType, wide: LogicalType, frame: Frame) -> Column:
    """Moments count in UTC."""
    if kind.root is TypeRoot.TIMESTAMP_LTZ:
        return as_array(column, frame.rows).cast(pa.timestamp("us"))
    return to_parameter(column, kind, wide, frame)


def _spark_difference(arguments: Sequence[str], binding: Binding) -> str | None:
    unit, kinds = _unit(binding.arguments[0]), binding.arg_types[1:]
    if unit in _MONTHS:
        return None
    zoned = kinds[0].root is TypeRoot.TIMESTAMP_LTZ
    _, start, end = arguments
    gap = f"(unix_micros({end}) - unix_micros({start}))" if zoned else interval_micros(f"({end} - {start})")
    count = f"{gap} div {_MICROS[unit]}"
    return f"CAST(shiftright(shiftleft({count}, 32), 32) AS INT)"


FUNCTIONS = (
    FunctionDefinition(
        "TIMESTAMPADD",
        FAMILY,
        _bind_add,
        "TIMESTAMPADD(unit, n, t)",
        f"A time n units later. Units: {', '.join(_UNITS)}.",
        compute=_add,
        spark_text=_spark_add,
    ),
    FunctionDefinition(
        "TIMESTAMPDIFF",
        FAMILY,
        _bind_difference,
        "TIMESTAMPDIFF(unit, a, b)",
        "Whole units from a to b; negative if b is earlier.",
        compute=_difference,
        spark_text=_spark_difference,
    ),
)
