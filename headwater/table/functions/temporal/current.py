"""The current time. In streams it is the frame's, in batch that of the query's start."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.table.functions.casting import zones
from headwater.table.functions.definition import Binding, Column, FunctionDefinition
from headwater.table.functions.frame import Frame
from headwater.table.functions.signatures import TIMESTAMP, call
from headwater.table.functions.temporal import FAMILY
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType, TimeAttribute

_LTZ3 = t.LocalZonedTimestampType(precision=3, nullable=False)


def _moment(millis: int) -> pa.Array:
    return pa.array([millis * 1000], pa.int64()).cast(pa.timestamp("us", "UTC"))


def _query_ms(frame: Frame) -> int:
    return frame.now_ms if frame.query_start_ms is None else frame.query_start_ms


def _local(frame: Frame) -> datetime.datetime:
    found: datetime.datetime = zones.to_local(_moment(_query_ms(frame)), frame.zone)[0].as_py()
    return found


def _now(
    name: str, kind: LogicalType, text: str, get: Callable[[Frame], Any], spark_text: str, bare: bool
) -> FunctionDefinition:
    def compute(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
        return get(frame)

    return FunctionDefinition(
        name,
        FAMILY,
        call(result=kind, nullable=False),
        name if bare else f"{name}()",
        text,
        compute=compute,
        spark_text=lambda arguments, binding: spark_text,
        deterministic=False,
        text=(lambda arguments: name) if bare else None,
    )


def _time_of(frame: Frame) -> Any:
    return pa.scalar(_local(frame).time().replace(microsecond=0), pa.time32("ms"))


_SPARK_LOCAL = "localtimestamp()"
_SPARK_TIME = (
    "CAST(hour(localtimestamp()) * 3600000 + minute(localtimestamp()) * 60000 + second(localtimestamp()) * 1000 AS INT)"
)


def _watermark(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    kind = columns[0].type
    if frame.watermark_ms is None:
        return pa.scalar(None, kind)
    return pa.scalar(frame.watermark_ms * 1000, pa.int64()).cast(pa.timestamp("us")).cast(kind)


def _watermark_type(types: Sequence[LogicalType]) -> LogicalType:
    kind = types[0]
    assert isinstance(kind, t.TimestampType | t.LocalZonedTimestampType)
    plain = t.TimestampType if isinstance(kind, t.TimestampType) else t.LocalZonedTimestampType
    return plain(precision=kind.precision)


def _no_value(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    raise SqlError("SOURCE_WATERMARK() stands alone, in WATERMARK FOR column AS SOURCE_WATERMARK()")


def _proctime(frame: Frame) -> Any:
    return _moment(frame.now_ms)[0]


FUNCTIONS = (
    _now(
        "CURRENT_DATE",
        t.DATE,
        "Today in the session's zone.",
        lambda frame: pa.scalar(_local(frame).date(), pa.date32()),
        "current_date()",
        True,
    ),
    _now(
        "CURRENT_TIME", t.TimeType(precision=0), "The time of day in the session's zone.", _time_of, _SPARK_TIME, True
    ),
    _now("LOCALTIME", t.TimeType(precision=0), "The time of day in the session's zone.", _time_of, _SPARK_TIME, True),
    _now(
        "LOCALTIMESTAMP",
        t.TimestampType(precision=3),
        "What the session zone's clocks show.",
        lambda frame: pa.scalar(_local(frame), pa.timestamp("us")),
        _SPARK_LOCAL,
        True,
    ),
    _now(
        "CURRENT_TIMESTAMP",
        _LTZ3,
        "The current moment.",
        lambda frame: _moment(_query_ms(frame))[0],
        "current_timestamp()",
        True,
    ),
    _now("NOW", _LTZ3, "The current moment.", lambda frame: _moment(_query_ms(frame))[0], "current_timestamp()", False),
    _now(
        "CURRENT_ROW_TIMESTAMP",
        _LTZ3,
        "The moment at which the row is computed.",
        _proctime,
        "current_timestamp()",
        False,
    ),
    _now(
        "PROCTIME",
        t.LocalZonedTimestampType(precision=3, nullable=False, attribute=TimeAttribute.PROCTIME),
        "The processing time, as a time attribute.",
        _proctime,
        "current_timestamp()",
        False,
    ),
    FunctionDefinition(
        "SOURCE_WATERMARK",
        FAMILY,
        call(result=t.LocalZonedTimestampType(precision=3), nullable=True),
        "SOURCE_WATERMARK()",
        "In WATERMARK FOR: the watermarks of the source itself, such as those of a DataStream.",
        compute=_no_value,
        spark_text=lambda arguments, binding: "CAST(NULL AS TIMESTAMP)",
        deterministic=False,
    ),
    FunctionDefinition(
        "CURRENT_WATERMARK",
        FAMILY,
        call(TIMESTAMP, result=_watermark_type, nullable=True),
        "CURRENT_WATERMARK(rowtime)",
        "The operator's watermark; NULL before there is one, and in batch.",
        compute=_watermark,
        spark_text=lambda arguments, binding: f"nullif({arguments[0]}, {arguments[0]})",
        deterministic=False,
    ),
)
