"""EXTRACT and its short forms: the fields of a date or time. A TIMESTAMP_LTZ shows those of the session's zone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.common.errors import FunctionTypeError
from headwater.table.functions.casting import zones
from headwater.table.functions.definition import Binding, BoundArgument, Column, FunctionDefinition, Signature
from headwater.table.functions.frame import Frame
from headwater.table.functions.kernels import as_array
from headwater.table.functions.signatures import TEMPORAL, call
from headwater.table.functions.temporal import FAMILY
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType, TypeRoot


def _century(values: pa.Array) -> pa.Array:
    return pc.divide(pc.add(pc.year(values), 99), 100)


def _millennium(values: pa.Array) -> pa.Array:
    return pc.divide(pc.add(pc.year(values), 999), 1000)


FIELDS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "YEAR": pc.year,
    "QUARTER": pc.quarter,
    "MONTH": pc.month,
    "WEEK": pc.iso_week,
    "DAY": pc.day,
    "DOY": pc.day_of_year,
    "DOW": lambda values: pc.day_of_week(values, count_from_zero=False, week_start=7),
    "ISODOW": lambda values: pc.day_of_week(values, count_from_zero=False, week_start=1),
    "ISOYEAR": pc.iso_year,
    "DECADE": lambda values: pc.divide(pc.year(values), 10),
    "CENTURY": _century,
    "MILLENNIUM": _millennium,
    "HOUR": pc.hour,
    "MINUTE": pc.minute,
    "SECOND": pc.second,
    "MILLISECOND": pc.millisecond,
}
_OF_THE_DAY = ("HOUR", "MINUTE", "SECOND", "MILLISECOND")
_SPARK = {
    "YEAR": "year({0})",
    "QUARTER": "quarter({0})",
    "MONTH": "month({0})",
    "WEEK": "weekofyear({0})",
    "DAY": "day({0})",
    "DOY": "dayofyear({0})",
    "DOW": "dayofweek({0})",
    "ISODOW": "extract(DAYOFWEEK_ISO FROM {0})",
    "ISOYEAR": "extract(YEAROFWEEK FROM {0})",
    "HOUR": "hour({0})",
    "MINUTE": "minute({0})",
    "SECOND": "second({0})",
}


def local(column: Column, kind: LogicalType, frame: Frame) -> pa.Array:
    """The column as what clocks show: a TIMESTAMP_LTZ in the session's zone."""
    values = as_array(column, frame.rows)
    return zones.to_local(values, frame.zone) if kind.root is TypeRoot.TIMESTAMP_LTZ else values


def _extract(unit: str, column: Column, kind: LogicalType, frame: Frame) -> Column:
    values = local(column, kind, frame)
    if unit == "EPOCH":
        micros = values.cast(pa.timestamp("us")).cast(pa.int64())
        return pa.array([None if each is None else each // 1_000_000 for each in micros.to_pylist()], pa.int64())
    if kind.root is TypeRoot.DATE and unit in _OF_THE_DAY:
        return pc.multiply(values.cast(pa.int32()).cast(pa.int64()), 0)
    return FIELDS[unit](values).cast(pa.int64())


def _check(unit: str, kind: LogicalType) -> None:
    if unit not in FIELDS and unit != "EPOCH":
        known = ", ".join([*FIELDS, "EPOCH"])
        raise FunctionTypeError(f"'{unit}' is no field of a time; known are {known}")
    if kind.root is TypeRoot.TIME and unit not in _OF_THE_DAY:
        raise FunctionTypeError(f"{kind.sql()} has no {unit}")


def _bind_extract(arguments: Sequence[BoundArgument]) -> Signature:
    if len(arguments) != 2 or not isinstance(arguments[0].literal, str):
        raise FunctionTypeError("EXTRACT takes a field and a date or time: EXTRACT(HOUR FROM t)")
    found = call(TEMPORAL, result=t.BIGINT)(arguments[1:])
    _check(arguments[0].literal.upper(), found.arguments[0])
    return Signature(found.result, (arguments[0].type, *found.arguments))


def _spark_extract(unit: str, text: str, kind: LogicalType) -> str | None:
    if kind.root is TypeRoot.TIME or unit not in _SPARK:
        return None
    if kind.root is TypeRoot.DATE and unit in _OF_THE_DAY:
        return f"CAST(datediff({text}, {text}) AS BIGINT)"
    return f"CAST({_SPARK[unit].format(text)} AS BIGINT)"


def _short(name: str, unit: str, text: str) -> FunctionDefinition:
    def bind(arguments: Sequence[BoundArgument]) -> Signature:
        found = call(TEMPORAL, result=t.BIGINT)(arguments)
        _check(unit, found.arguments[0])
        return found

    def compute(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
        return _extract(unit, columns[0], binding.arg_types[0], frame)

    def spark_text(arguments: Sequence[str], binding: Binding) -> str | None:
        return _spark_extract(unit, arguments[0], binding.arg_types[0])

    return FunctionDefinition(name, FAMILY, bind, f"{name}(t)", text, compute=compute, spark_text=spark_text)


def _compute_extract(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    return _extract(binding.literal(0).upper(), columns[1], binding.arg_types[1], frame)


def _extract_spark(arguments: Sequence[str], binding: Binding) -> str | None:
    return _spark_extract(binding.literal(0).upper(), arguments[1], binding.arg_types[1])


def _written(arguments: Sequence[Any]) -> str:
    return f"EXTRACT({arguments[0]} FROM {arguments[1]})"


FUNCTIONS = (
    FunctionDefinition(
        "EXTRACT",
        FAMILY,
        _bind_extract,
        "EXTRACT(field FROM t)",
        f"A field of a date or time: {', '.join([*FIELDS, 'EPOCH'])}. DOW is 1 on Sundays, ISODOW on Mondays.",
        compute=_compute_extract,
        spark_text=_extract_spark,
        text=_written,
    ),
    _short("YEAR", "YEAR", "The year."),
    _short("QUARTER", "QUARTER", "The quarter, 1 to 4."),
    _short("MONTH", "MONTH", "The month, 1 to 12."),
    _short("WEEK", "WEEK", "The week of the year by ISO 8601."),
    _short("DAYOFYEAR", "DOY", "The day of the year, from 1."),
    _short("DAYOFMONTH", "DAY", "The day of the month, from 1."),
    _short("DAYOFWEEK", "DOW", "The day of the week; 1 is Sunday."),
    _short("HOUR", "HOUR", "The hour, 0 to 23."),
    _short("MINUTE", "MINUTE", "The minute."),
    _short("SECOND", "SECOND", "The second."),
)
