"""+ - * / of times and intervals.

A month added to the 31st gives the last day of a shorter month.
"""

from __future__ import annotations

import calendar
import datetime
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from headwater.common.errors import ComputationError
from headwater.table.functions.casting import zones
from headwater.table.functions.casting.spark import interval_micros
from headwater.table.functions.definition import Binding, Column, Signature
from headwater.table.functions.frame import Frame
from headwater.table.functions.kernels import as_array
from headwater.table.types import logical as t
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType, TypeRoot
from headwater.table.types.spark import spark_type

_Date = TypeVar("_Date", bound=datetime.date)
_MONTHS = TypeRoot.INTERVAL_YEAR_MONTH
_MS_PER_DAY = 86_400_000
MONTH_INTERVAL = t.YearMonthIntervalType(resolution="MONTH")
SECOND_INTERVAL = t.DayTimeIntervalType(resolution="SECOND(3)")


def bind(sign: str, left: LogicalType, right: LogicalType) -> Signature | None:
    """The types of a call with a time or an interval, or None if it is none of those that exist."""
    if sign in "+-" and t.is_interval(left) and right.root is left.root:
        return Signature(MONTH_INTERVAL if left.root is _MONTHS else SECOND_INTERVAL, (left, right))
    if sign in "+-" and t.is_temporal(left) and t.is_interval(right):
        return Signature(left, (left, right))
    if sign == "+" and t.is_interval(left) and t.is_temporal(right):
        return Signature(right, (left, right))
    if sign in "*/" and t.is_interval(left) and t.is_numeric(right):
        return Signature(MONTH_INTERVAL if left.root is _MONTHS else SECOND_INTERVAL, (left, _factor(right)))
    if sign == "*" and t.is_numeric(left) and t.is_interval(right):
        return Signature(MONTH_INTERVAL if right.root is _MONTHS else SECOND_INTERVAL, (_factor(left), right))
    return None


def _factor(of: LogicalType) -> LogicalType:
    return (t.BIGINT if t.is_integer(of) else t.DOUBLE).with_nullable(of.nullable)


def compute(sign: str, left: Column, right: Column, binding: Binding, frame: Frame) -> Column:
    one, other = binding.arg_types
    if t.is_interval(one) and t.is_temporal(other):
        left, right, one, other = right, left, other, one
    if t.is_numeric(one):
        left, right, one, other = right, left, other, one
    values, amount = as_array(left, frame.rows), as_array(right, frame.rows)
    if t.is_numeric(other):
        return _scaled(sign, values, amount)
    if t.is_interval(one):
        return (pc.add if sign == "+" else pc.subtract)(values, amount)
    if sign == "-":
        amount = pc.negate(amount)
    if other.root is _MONTHS:
        return add_months(values, amount, one, frame.zone)
    return add_duration(values, amount, one)


def _scaled(sign: str, values: pa.Array, factor: pa.Array) -> pa.Array:
    kind = values.type
    numbers = pc.divide(values.cast(pa.int64()), 1000) if pa.types.is_duration(kind) else values
    found = (pc.multiply if sign == "*" else pc.divide)(numbers.cast(factor.type), factor)
    whole = pc.trunc(found).cast(pa.int64(), safe=False) if pa.types.is_floating(found.type) else found
    return pc.multiply(whole, 1000).cast(kind) if pa.types.is_duration(kind) else whole.cast(kind)


def add_duration(values: pa.Array, amount: pa.Array, kind: LogicalType) -> pa.Array:
    """A date moves by whole days; a time of day goes round the clock."""
    millis = pc.divide(amount.cast(pa.int64()), 1000)
    if kind.root is TypeRoot.DATE:
        days = pc.divide(millis, _MS_PER_DAY)
        return pc.add(values.cast(pa.int32()).cast(pa.int64()), days).cast(pa.int32()).cast(pa.date32())
    if kind.root is TypeRoot.TIME:
        total = pc.add(values.cast(pa.int32()).cast(pa.int64()), millis)
        found = [None if each is None else each % _MS_PER_DAY for each in total.to_pylist()]
        return pa.array(found, pa.int32()).cast(pa.time32("ms"))
    return pc.add(values, amount.cast(pa.duration(values.type.unit)))


def add_to_date(date: _Date, months: int) -> _Date:
    """So many months later; the 31st becomes the last day of a shorter month."""
    at = date.year * 12 + date.month - 1 + months
    year, month = divmod(at, 12)
    if not datetime.MINYEAR <= year <= datetime.MAXYEAR:
        raise ComputationError(f"{date} and {months} months is outside of the years 1 to 9999")
    return date.replace(year=year, month=month + 1, day=min(date.day, calendar.monthrange(year, month + 1)[1]))


def add_months(values: pa.Array, months: pa.Array, kind: LogicalType, zone: str) -> pa.Array:
    if kind.root is TypeRoot.TIME:
        return pc.if_else(pc.is_null(months), pa.scalar(None, values.type), values)
    zoned = kind.root is TypeRoot.TIMESTAMP_LTZ
    local = zones.to_local(values, "UTC") if zoned else values
    pairs: Any = zip(local.to_pylist(), months.to_pylist(), strict=True)
    moved = pa.array(
        [None if value is None or count is None else add_to_date(value, count) for value, count in pairs], local.type
    )
    return moved.cast(to_arrow(kind)) if not zoned else zones.to_moment(moved, "UTC")


def spark(sign: str, left: str, right: str, binding: Binding) -> str | None:
    one, other = binding.arg_types
    if t.is_interval(one) and t.is_temporal(other):
        left, right, one, other = right, left, other, one
    if not t.is_temporal(one):
        return None
    if one.root is TypeRoot.TIME:
        return None
    if other.root is _MONTHS:
        # Spark moves a TIMESTAMP in its session's zone; months are added to what UTC's clocks show.
        if one.root is TypeRoot.TIMESTAMP_LTZ:
            return None
        return f"CAST(({left} {sign} make_ym_interval(0, {right})) AS {spark_type(one)})"
    if one.root is TypeRoot.DATE:
        days = f"CAST({interval_micros(right)} div 86400000000L AS INT)"
        return f"date_add({left}, {'-' if sign == '-' else ''}{days})"
    if one.root is TypeRoot.TIMESTAMP_LTZ:
        return f"timestamp_micros(unix_micros({left}) {sign} {interval_micros(right)})"
    return f"({left} {sign} {right})"
