"""FLOOR and CEIL: of numbers, and of times to a unit. A TIMESTAMP_LTZ is rounded by the session zone's clocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.common.errors import FunctionTypeError
from headwater.table.functions.casting import zones
from headwater.table.functions.definition import Binding, BoundArgument, Column, FunctionDefinition, Signature
from headwater.table.functions.frame import Frame
from headwater.table.functions.kernels import as_array
from headwater.table.functions.numeric import bind_whole, whole_kernel, whole_spark
from headwater.table.functions.signatures import TEMPORAL, call, first
from headwater.table.functions.temporal import FAMILY
from headwater.table.functions.temporal.fields import local
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType, TypeRoot

_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
_OF_THE_DAY = ("HOUR", "MINUTE", "SECOND", "MILLISECOND")


def _bind(arguments: Sequence[BoundArgument]) -> Signature:
    if len(arguments) == 1:
        return bind_whole(arguments)
    if len(arguments) != 2 or not isinstance(arguments[1].literal, str):
        raise FunctionTypeError("takes a number, or a time and a unit: FLOOR(t TO HOUR)")
    unit = arguments[1].literal.upper()
    found = call(TEMPORAL, result=first)(arguments[:1])
    kind = found.arguments[0]
    if unit not in _UNITS or (kind.root is TypeRoot.TIME and unit not in _OF_THE_DAY):
        raise FunctionTypeError(f"{kind.sql()} is not rounded to '{unit}'; known units are {', '.join(_UNITS)}")
    return Signature(found.result, (kind, arguments[1].type))


def _kernel(upwards: bool) -> Any:
    whole = whole_kernel(pc.ceil if upwards else pc.floor)

    def compute(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
        if len(columns) == 1:
            return whole(columns, binding, frame)
        return _round_time(upwards, columns[0], binding.literal(1).upper(), binding.arg_types[0], frame)

    return compute


def _round_time(upwards: bool, column: Column, unit: str, kind: LogicalType, frame: Frame) -> pa.Array:
    values = local(column, kind, frame)
    if kind.root is TypeRoot.DATE:
        return values if unit in _OF_THE_DAY else _rounded(upwards, values, unit).cast(pa.date32())
    if kind.root is TypeRoot.TIME:
        moments = values.cast(pa.int32()).cast(pa.int64()).cast(pa.timestamp("ms"))
        rounded = _rounded(upwards, moments, unit).cast(pa.int64())
        day = pa.scalar(86_400_000, pa.int64())
        within = pc.if_else(pc.greater_equal(rounded, day), pc.subtract(rounded, day), rounded)
        return within.cast(pa.int32()).cast(pa.time32("ms"))
    rounded = _rounded(upwards, values, unit).cast(values.type)
    if kind.root is not TypeRoot.TIMESTAMP_LTZ:
        return rounded.cast(to_arrow(kind))
    if unit in _OF_THE_DAY:  # as many minutes earlier or later: the hour that exists twice stays the one it is
        return pc.add(as_array(column, frame.rows), pc.subtract(rounded, values))
    return zones.to_moment(rounded, frame.zone)


def _rounded(upwards: bool, values: pa.Array, unit: str) -> pa.Array:
    """What is a whole unit already stays: Arrow's own rounding moves it up for months."""
    below = pc.floor_temporal(values, unit=unit.lower(), week_starts_monday=False)
    if not upwards:
        return below
    above = pc.ceil_temporal(values, unit=unit.lower(), week_starts_monday=False)
    return pc.if_else(pc.equal(below, values), below, above)


_INTO_DAY = {
    "HOUR": "{0} - make_dt_interval(0, 0, minute({0}), extract(SECOND FROM {0}))",
    "MINUTE": "{0} - make_dt_interval(0, 0, 0, extract(SECOND FROM {0}))",
    "SECOND": "{0} - make_dt_interval(0, 0, 0, extract(SECOND FROM {0}) % 1)",
}
_DAYS = {"YEAR": "YEAR", "QUARTER": "QUARTER", "MONTH": "MONTH"}


def _spark_floor(arguments: Sequence[str], binding: Binding) -> str | None:
    if len(arguments) == 1:
        return whole_spark("floor")(arguments, binding)
    unit, kind = binding.literal(1).upper(), binding.arg_types[0]
    if kind.root is TypeRoot.DATE and unit in _DAYS:
        return f"trunc({arguments[0]}, '{unit}')"
    if kind.root is not TypeRoot.TIMESTAMP:
        return None
    if unit in _INTO_DAY:
        return f"({_INTO_DAY[unit].format(arguments[0])})"
    if unit == "DAY":
        return f"CAST(CAST({arguments[0]} AS DATE) AS TIMESTAMP_NTZ)"
    return f"CAST(trunc(CAST({arguments[0]} AS DATE), '{unit}') AS TIMESTAMP_NTZ)" if unit in _DAYS else None


def _spark_ceil(arguments: Sequence[str], binding: Binding) -> str | None:
    return whole_spark("ceil")(arguments, binding) if len(arguments) == 1 else None


def _written(name: str) -> Any:
    return lambda arguments: f"{name}({' TO '.join(arguments)})"


FUNCTIONS = (
    FunctionDefinition(
        "FLOOR",
        FAMILY,
        _bind,
        "FLOOR(x), FLOOR(t TO unit)",
        f"A number or time rounded down. Units: {', '.join(_UNITS)}.",
        compute=_kernel(False),
        spark_text=_spark_floor,
        text=_written("FLOOR"),
    ),
    FunctionDefinition(
        "CEIL",
        FAMILY,
        _bind,
        "CEIL(x), CEIL(t TO unit)",
        "A number or time rounded up.",
        compute=_kernel(True),
        spark_text=_spark_ceil,
        text=_written("CEIL"),
        aliases=("CEILING",),
    ),
)
