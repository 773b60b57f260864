"""Dates and times from and to text and numbers: DATE_FORMAT, TO_TIMESTAMP, FROM_UNIXTIME and the like."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute as pc

from headwater.common.errors import ComputationError, FunctionTypeError
from headwater.table.functions.casting import from_text, zones
from headwater.table.functions.casting.spark import iso_text
from headwater.table.functions.definition import Binding, BoundArgument, Column, FunctionDefinition, Signature
from headwater.table.functions.frame import Frame
from headwater.table.functions.kernels import as_array, row_by_row
from headwater.table.functions.signatures import FLOATING, INT32, INT64, TEXT, TIMESTAMP, call, one_of
from headwater.table.functions.temporal import FAMILY, java_patterns
from headwater.table.functions.temporal.fields import local
from headwater.table.types import logical as t
from headwater.table.types.logical import TypeRoot

DEFAULT_PATTERN = "yyyy-MM-dd HH:mm:ss"
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ComputationError(f"unknown time zone '{name}'; expected a name such as 'Europe/Berlin'") from None


def _parse_prefix(text: str, pattern: str = DEFAULT_PATTERN) -> datetime.datetime | None:
    """A timestamp by a pattern; what stands behind it is ignored. None if it is malformed."""
    return java_patterns.read(pattern, text, more=True)


def _parse(text: str, pattern: str | None = None) -> datetime.datetime | None:
    """A timestamp by a pattern; without one, as CAST reads it. None if it is malformed."""
    if pattern not in (None, DEFAULT_PATTERN, "yyyy-MM-dd"):  # Flink reads these three alike
        return java_patterns.read(pattern, text)
    try:
        return _EPOCH + from_text.read_timestamp_us(text, 6) * _MICROSECOND
    except ValueError:
        return None


def _date_format(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    values, pattern = columns
    kind = binding.arg_types[0]
    if t.is_string(kind):
        return row_by_row(_reformat)(columns, binding, frame)
    shown = local(values, kind, frame)
    slices = java_patterns.slices_of(pattern.as_py()) if isinstance(pattern, pa.Scalar) and pattern.is_valid else None
    if slices is not None:
        iso = shown.cast(pa.timestamp("us")).cast(pa.string())
        pieces = [each if isinstance(each, str) else pc.utf8_slice_codeunits(iso, *each) for each in slices]
        return pieces[0] if len(pieces) == 1 else pc.binary_join_element_wise(*pieces, "")
    return row_by_row(lambda value, pattern: java_patterns.write(pattern, value))([shown, pattern], binding, frame)


def _reformat(text: str, pattern: str) -> str | None:
    value = _parse_prefix(text)
    return None if value is None else java_patterns.write(pattern, value)


def _spark_date_format(arguments: Sequence[str], binding: Binding) -> str | None:
    pattern = binding.literal(1)
    if t.is_string(binding.arg_types[0]) or not isinstance(pattern, str) or java_patterns.slices_of(pattern) is None:
        return None
    if binding.arg_types[0].root is TypeRoot.TIMESTAMP_LTZ:
        return f"date_format({', '.join(arguments)})"
    iso, pieces = iso_text(arguments[0]), java_patterns.slices_of(pattern) or []
    texts = (
        "'" + each.replace("\\", "\\\\").replace("'", "\\'") + "'"
        if isinstance(each, str)
        else f"substring({iso}, {each[0] + 1}, {each[1] - each[0]})"
        for each in pieces
    )
    return f"concat({', '.join(texts)})"


def _to_date(text: str, pattern: str | None = None) -> datetime.date | None:
    if pattern is not None and pattern != "yyyy-MM-dd":
        value = _parse_prefix(text, pattern)
        return None if value is None else value.date()
    try:
        return datetime.date(1970, 1, 1) + datetime.timedelta(days=from_text.read_date(text))
    except ValueError:
        return None


def _to_timestamp(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    def parse(text: str, pattern: str | None = None) -> datetime.datetime | None:
        value = _parse(text, pattern)
        return None if value is None else value.replace(microsecond=value.microsecond // 1000 * 1000)

    return row_by_row(parse)(columns, binding, frame)


def _bind_ltz(arguments: Sequence[BoundArgument]) -> Signature:
    result = t.LocalZonedTimestampType(precision=3)
    numbers = one_of(
        call(INT64, INT32, result=result, optional=1, nullable=True),
        call(FLOATING, INT32, result=result, optional=1, nullable=True),
        call(TEXT, TEXT, TEXT, result=result, optional=2, nullable=True),
    )
    found = numbers(arguments)
    digits = arguments[1].literal if len(arguments) > 1 else None
    if isinstance(digits, int) and digits not in (0, 3):
        raise FunctionTypeError(f"TO_TIMESTAMP_LTZ takes seconds (0) or milliseconds (3), found precision {digits}")
    return found


def _to_ltz(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    values = as_array(columns[0], frame.rows)
    if pa.types.is_string(values.type):
        return _ltz_of_text(columns, binding, frame)
    digits = columns[1].as_py() if len(columns) > 1 else 3
    if digits not in (0, 3):
        raise ComputationError(f"TO_TIMESTAMP_LTZ takes seconds (0) or milliseconds (3), found precision {digits}")
    factor = 1_000_000 if digits == 0 else 1000
    if pa.types.is_floating(values.type):
        millis = pc.floor(pc.multiply(values, 1000.0 if digits == 0 else 1.0)).cast(pa.int64())
        return pc.multiply(millis, 1000).cast(pa.timestamp("us", "UTC"))
    return pc.multiply(values, factor).cast(pa.timestamp("us", "UTC"))


def _ltz_of_text(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    """Without a zone, in UTC."""
    texts, *more = (as_array(each, frame.rows).to_pylist() for each in columns)
    patterns = more[0] if more else [None] * frame.rows
    names = more[1] if len(more) > 1 else ["UTC"] * frame.rows
    found: list[datetime.datetime | None] = []
    for text, pattern, name in zip(texts, patterns, names, strict=True):
        missing = text is None or name is None or (more and pattern is None)
        value = None if missing else _parse(text, pattern)
        if value is None and not missing:
            raise ComputationError(
                f"TO_TIMESTAMP_LTZ: '{text}' is no timestamp of the pattern '{pattern or DEFAULT_PATTERN}'"
            )
        found.append(None if value is None else _moment(value, name))
    return pa.array(found, pa.timestamp("us", "UTC"))


def _moment(value: datetime.datetime, zone: str) -> datetime.datetime | None:
    """The moment of a local time. Text with a zone that does not exist has none."""
    try:
        _zone(zone)
    except ComputationError:
        return None
    moment = zones.to_moment(pa.array([value], pa.timestamp("us")), zone)
    found: datetime.datetime = moment[0].as_py()
    return found


def _from_unixtime(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    seconds = as_array(columns[0], frame.rows)
    shown = zones.to_local(seconds.cast(pa.timestamp("s")).cast(pa.timestamp("us", "UTC")), frame.zone)
    pattern = columns[1] if len(columns) == 2 else pa.scalar(DEFAULT_PATTERN)
    return row_by_row(lambda value, pattern: java_patterns.write(pattern, value))([shown, pattern], binding, frame)


def _unix_timestamp(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    if not columns:
        return pa.scalar(_query_ms(frame) // 1000, pa.int64())
    texts = as_array(columns[0], frame.rows).to_pylist()
    patterns = as_array(columns[1], frame.rows).to_pylist() if len(columns) == 2 else [DEFAULT_PATTERN] * len(texts)
    pairs = zip(texts, patterns, strict=True)
    values = [None if text is None or pattern is None else _parse_prefix(text, pattern) for text, pattern in pairs]
    moments = zones.to_moment(pa.array(values, pa.timestamp("us")), frame.zone).cast(pa.int64()).to_pylist()
    absent = -9223372036854775808
    return pa.array(
        [
            None if text is None else absent if each is None else each // 1_000_000
            for text, each in zip(texts, moments, strict=True)
        ],
        pa.int64(),
    )


def _query_ms(frame: Frame) -> int:
    return frame.now_ms if frame.query_start_ms is None else frame.query_start_ms


def _convert_tz(text: str, source: str, target: str) -> str | None:
    value = _parse_prefix(text)
    if value is None:
        return None
    _zone(source), _zone(target)
    moment = zones.to_moment(pa.array([value], pa.timestamp("us")), source)
    shown: datetime.datetime = zones.to_local(moment, target)[0].as_py()
    return java_patterns.write(DEFAULT_PATTERN, shown)


_BIND_FORMAT: Any = one_of(
    call(TIMESTAMP, TEXT, result=t.STRING, nullable=True), call(TEXT, TEXT, result=t.STRING, nullable=True)
)

FUNCTIONS = (
    FunctionDefinition(
        "DATE_FORMAT",
        FAMILY,
        _BIND_FORMAT,
        "DATE_FORMAT(t, pattern)",
        "A timestamp, or text that is one, by a pattern of Java's DateTimeFormatter.",
        compute=_date_format,
        spark_text=_spark_date_format,
    ),
    FunctionDefinition(
        "TO_DATE",
        FAMILY,
        call(TEXT, TEXT, result=t.DATE, optional=1, nullable=True),
        "TO_DATE(s [, pattern])",
        "The date that the text is; NULL if it is none.",
        compute=row_by_row(_to_date),
    ),
    FunctionDefinition(
        "TO_TIMESTAMP",
        FAMILY,
        call(TEXT, TEXT, result=t.TimestampType(precision=3), optional=1, nullable=True),
        "TO_TIMESTAMP(s [, pattern])",
        "The TIMESTAMP(3) that the text is; NULL if it is none.",
        compute=_to_timestamp,
    ),
    FunctionDefinition(
        "TO_TIMESTAMP_LTZ",
        FAMILY,
        _bind_ltz,
        "TO_TIMESTAMP_LTZ(n [, precision]), TO_TIMESTAMP_LTZ(s [, pattern [, zone]])",
        "The moment so many seconds (precision 0) or milliseconds (3) after 1970-01-01 UTC; or the one that text says.",
        compute=_to_ltz,
        spark_text=lambda a, b: (
            None
            if not t.is_integer(b.arg_types[0]) or b.literal(1, 3) not in (0, 3)
            else f"timestamp_{'seconds' if b.literal(1, 3) == 0 else 'millis'}({a[0]})"
        ),
    ),
    FunctionDefinition(
        "FROM_UNIXTIME",
        FAMILY,
        call(INT64, TEXT, result=t.STRING, optional=1),
        "FROM_UNIXTIME(seconds [, pattern])",
        "What the session zone's clocks show so many seconds after 1970-01-01 UTC.",
        compute=_from_unixtime,
    ),
    FunctionDefinition(
        "UNIX_TIMESTAMP",
        FAMILY,
        call(TEXT, TEXT, result=t.BIGINT, optional=2),
        "UNIX_TIMESTAMP([s [, pattern]])",
        "Seconds since 1970-01-01 UTC: now, or when the session zone's clocks show what the text says.",
        compute=_unix_timestamp,
        spark_text=lambda a, b: "unix_timestamp()" if not a else None,
        deterministic=False,
    ),
    FunctionDefinition(
        "CONVERT_TZ",
        FAMILY,
        call(TEXT, TEXT, TEXT, result=t.STRING),
        "CONVERT_TZ(s, from, to)",
        "What clocks in the zone `to` show when those in `from` show s.",
        compute=row_by_row(_convert_tz),
    ),
)
