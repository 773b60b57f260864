"""CAST as an expression of Spark's SQL that gives what Flink's does, for a session in ANSI mode."""

from __future__ import annotations

from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType, TypeRoot
from headwater.table.types.spark import spark_type

_R = TypeRoot
_BITS = {_R.TINYINT: 8, _R.SMALLINT: 16, _R.INTEGER: 32, _R.BIGINT: 64}


def spark_cast_text(text: str, source: LogicalType, target: LogicalType) -> str:
    """As `exact_spark_cast`, but Spark's own CAST where there is nothing better: for arguments, which mostly widen."""
    return exact_spark_cast(text, source, target) or f"CAST({text} AS {spark_type(target)})"


def exact_spark_cast(text: str, source: LogicalType, target: LogicalType) -> str | None:
    """Return Spark's expression, or None if Spark has none with Flink's result."""
    if source.same_kind(target):
        return text
    if source.root is _R.NULL:
        return f"CAST(NULL AS {spark_type(target)})"
    if isinstance(target, t.CharType | t.VarCharType):
        return _to_string(text, source, target)
    if isinstance(target, t.BinaryType | t.VarBinaryType):
        return _to_bytes(text, target)
    if t.is_string(source):
        return None
    if t.is_numeric(target) and (t.is_numeric(source) or source.root is _R.BOOLEAN):
        return _to_number(text, source, target)
    if target.root is _R.BOOLEAN and t.is_numeric(source):
        return f"({text} <> 0)"
    if t.is_temporal(target) and t.is_temporal(source):
        return _to_time(text, source, target)
    return None


def _to_string(text: str, source: LogicalType, target: t.CharType | t.VarCharType) -> str | None:
    if t.is_string(source):
        whole = text
    elif source.root is _R.BOOLEAN:
        whole = f"upper(CAST({text} AS STRING))"
    elif t.is_numeric(source) or source.root is _R.DATE:
        whole = f"CAST({text} AS STRING)"
    elif isinstance(source, t.TimestampType | t.LocalZonedTimestampType) and source.precision <= 6:
        if isinstance(source, t.TimestampType):
            digits = 20 + source.precision if source.precision else 19
            whole = f"substring({iso_text(text)}, 1, {digits})"
        else:
            fraction = "." + "S" * source.precision if source.precision else ""
            whole = f"date_format({text}, 'yyyy-MM-dd HH:mm:ss{fraction}')"
    else:
        return None
    if isinstance(target, t.CharType):
        return f"rpad({whole}, {target.length}, ' ')"
    return whole if target.length == t.MAX_LENGTH else f"substring({whole}, 1, {target.length})"


def _to_bytes(text: str, target: t.BinaryType | t.VarBinaryType) -> str:
    whole = f"CAST({text} AS BINARY)"
    if isinstance(target, t.BinaryType):
        return f"rpad({whole}, {target.length}, X'00')"
    return whole if target.length == t.MAX_LENGTH else f"substring({whole}, 1, {target.length})"


def _to_number(text: str, source: LogicalType, target: LogicalType) -> str:
    name = spark_type(target)
    if isinstance(target, t.DecimalType):
        return f"try_cast({text} AS {name})"
    if target.root not in _BITS or source.root is _R.BOOLEAN:
        return f"CAST({text} AS {name})"
    bits = _BITS[target.root]
    if source.root in t.APPROXIMATE_ROOTS:
        whole = _saturated(text, 64 if bits == 64 else 32)
        return whole if bits >= 32 else _wrapped(whole, bits, name)
    if source.root is _R.DECIMAL:
        whole = f"CAST({text} AS BIGINT)"
        return whole if bits == 64 else _wrapped(whole, bits, name)
    return f"CAST({text} AS {name})" if _BITS[source.root] <= bits else _wrapped(text, bits, name)


def _wrapped(text: str, bits: int, name: str) -> str:
    """Keep the low bits."""
    cut = 64 - bits
    return f"CAST(shiftright(shiftleft(CAST({text} AS BIGINT), {cut}), {cut}) AS {name})"


def _saturated(text: str, bits: int) -> str:
    name, limit = ("BIGINT", "9.223372036854775807E18D") if bits == 64 else ("INT", "2.147483647E9D")
    lowest, highest = ("-9223372036854775807L - 1", "9223372036854775807L")
    if bits == 32:
        lowest, highest = "-2147483647 - 1", "2147483647"
    return (
        f"CASE WHEN isnan({text}) THEN CAST(0 AS {name}) WHEN {text} >= {limit} THEN {highest}"
        f" WHEN {text} <= -{limit} THEN {lowest} ELSE CAST({text} AS {name}) END"
    )


def _to_time(text: str, source: LogicalType, target: LogicalType) -> str | None:
    if target.root is _R.DATE:
        return f"CAST({text} AS DATE)" if source.root in t.TIMESTAMP_ROOTS else None
    if isinstance(target, t.TimeType):
        unit = 10 ** max(0, 3 - target.precision)
        if isinstance(source, t.TimeType):
            return f"(({text}) div {unit} * {unit})" if target.precision < source.precision else text
        return f"CAST({millis_of_day(text)} div {unit} * {unit} AS INT)"
    assert isinstance(target, t.TimestampType | t.LocalZonedTimestampType)
    if source.root is _R.TIME:
        whole = (
            f"(TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, CAST({text} AS DECIMAL(18,6)) / 1000))"
        )
    else:
        whole = text
    whole = f"CAST({whole} AS {spark_type(target)})"
    finer = source.precision if isinstance(source, t.TimestampType | t.LocalZonedTimestampType) else 0
    return cut_time(whole, target.precision) if target.precision < min(6, finer) else whole


def iso_text(text: str) -> str:
    """A TIMESTAMP_NTZ as text with six digits. Spark's date_format reads it in the session's zone, which has gaps."""
    shown = f"CAST({text} AS STRING)"
    return f"concat(substring({shown}, 1, 19), '.', rpad(substring({shown}, 21), 6, '0'))"


def interval_micros(text: str) -> str:
    """The microseconds of an INTERVAL DAY TO SECOND, as BIGINT. Spark itself adds days by the session zone's clocks."""
    text = f"CAST({text} AS INTERVAL DAY TO SECOND)"
    return (
        f"(CAST(extract(DAY FROM {text}) AS BIGINT) * 86400000000L + extract(HOUR FROM {text}) * 3600000000L"
        f" + extract(MINUTE FROM {text}) * 60000000L + CAST(extract(SECOND FROM {text}) * 1000000 AS BIGINT))"
    )


def millis_of_day(text: str) -> str:
    """The milliseconds of the day of a timestamp, as BIGINT."""
    return (
        f"(hour({text}) * 3600000L + minute({text}) * 60000L"
        f" + CAST(floor(extract(SECOND FROM {text}) * 1000) AS BIGINT))"
    )


def cut_time(text: str, precision: int) -> str:
    """Cut a timestamp to so many digits."""
    unit = "1" if precision == 0 else "0." + "0" * (precision - 1) + "1"
    return f"({text} - make_dt_interval(0, 0, 0, extract(SECOND FROM {text}) % {unit}))"
