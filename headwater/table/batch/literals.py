"""Constants as Spark SQL."""

from __future__ import annotations

import datetime

from headwater.table.plan.expressions import Literal
from headwater.table.types.logical import TypeRoot
from headwater.table.types.spark import spark_type


def spark_string(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def spark_literal(literal: Literal) -> str:
    """The constant with exactly its type."""
    value, root = literal.value, literal.type.root
    if value is None:
        return f"CAST(NULL AS {spark_type(literal.type)})"
    match root:
        case TypeRoot.BOOLEAN:
            return "TRUE" if value else "FALSE"
        case TypeRoot.CHAR | TypeRoot.VARCHAR:
            return spark_string(value)
        case TypeRoot.BINARY | TypeRoot.VARBINARY:
            return f"X'{value.hex()}'"
        case TypeRoot.DATE:
            return f"DATE'{value.isoformat()}'"
        case TypeRoot.TIMESTAMP:
            return f"TIMESTAMP_NTZ'{value.isoformat(' ')}'"
        case TypeRoot.TIME:
            return str(_milliseconds(value))
        case TypeRoot.INTERVAL_YEAR_MONTH:
            return f"({value})" if value < 0 else str(value)
        case TypeRoot.INTERVAL_DAY_TIME:
            return _interval(value)
    return f"CAST('{value}' AS {spark_type(literal.type)})"


def _milliseconds(value: datetime.time) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


def _interval(value: datetime.timedelta) -> str:
    sign = "-" if value < datetime.timedelta(0) else ""
    value = abs(value)
    hours, rest = divmod(value.seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    text = f"{value.days} {hours:02}:{minutes:02}:{seconds:02}.{value.microseconds:06}"
    return f"INTERVAL {sign}'{text}' DAY TO SECOND"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
