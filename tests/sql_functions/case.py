"""A call of a function over the samples: what is recorded from Flink and computed by both engines."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headwater.table.functions.definition import Binding, BoundArgument
from headwater.table.functions.frame import Frame
from headwater.table.functions.registry import lookup
from headwater.table.types import logical as t
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType
from headwater.table.types.type_text import parse_type
from tests.sql_functions import samples


@dataclass(frozen=True)
class Argument:
    """A column of the samples, a literal, a word of the syntax or a type."""

    text: str
    bound: BoundArgument
    column: str = ""


def column(name: str) -> Argument:
    return Argument(name, BoundArgument(samples.type_of(name)), name)


def lit(value: Any) -> Argument:
    """A literal with the type that Flink gives it."""
    kind: LogicalType
    if value is None:
        return Argument("NULL", BoundArgument(t.NULL))
    if isinstance(value, bool):
        return Argument(str(value).upper(), BoundArgument(t.BOOLEAN.not_null(), value))
    if isinstance(value, int):
        kind = t.INT if abs(value) < 1 << 31 else t.BIGINT
        return Argument(str(value), BoundArgument(kind.not_null(), value))
    if isinstance(value, float):
        return Argument(f"{value}E0", BoundArgument(t.DOUBLE.not_null(), value))
    if isinstance(value, Decimal):
        digits = value.as_tuple()
        scale = -int(digits.exponent)
        kind = t.DecimalType(precision=max(len(digits.digits), scale + 1), scale=scale, nullable=False)
        return Argument(str(value), BoundArgument(kind, value))
    quoted = value.replace("'", "''")
    return Argument(f"'{quoted}'", BoundArgument(t.CharType(length=len(value), nullable=False), value))


def days(count: int) -> Argument:
    kind = t.DayTimeIntervalType(resolution="DAY", nullable=False)
    return Argument(f"INTERVAL '{count}' DAY", BoundArgument(kind, datetime.timedelta(days=count)))


def seconds(count: int) -> Argument:
    kind = t.DayTimeIntervalType(resolution="SECOND", nullable=False)
    return Argument(f"INTERVAL '{count}' SECOND", BoundArgument(kind, datetime.timedelta(seconds=count)))


def months(count: int) -> Argument:
    kind = t.YearMonthIntervalType(resolution="MONTH", nullable=False)
    return Argument(f"INTERVAL '{count}' MONTH", BoundArgument(kind, count))


def word(text: str) -> Argument:
    return Argument(text, BoundArgument(t.CharType(length=len(text), nullable=False), text))


def as_type(text: str) -> Argument:
    kind = parse_type(text)
    return Argument(text, BoundArgument(kind, kind))


@dataclass(frozen=True)
class Case:
    function: str
    arguments: tuple[Argument, ...]

    @property
    def sql(self) -> str:
        """The call in Flink's SQL."""
        definition = lookup(self.function)
        assert definition is not None, f"no function {self.function}"
        if self.function == "COUNT" and not self.arguments:
            return "COUNT(*)"
        if definition.text is None:
            return f"{self.function}({', '.join(each.text for each in self.arguments)})"
        return definition.sql([each.text for each in self.arguments])

    def bind(self) -> Binding:
        definition = lookup(self.function)
        assert definition is not None
        return definition.bind([each.bound for each in self.arguments])

    def arrays(self, rows: Sequence[int] | None = None) -> list[Any]:
        return [_column(each, rows) for each in self.arguments]

    def spark_arguments(self) -> list[str]:
        return [_spark(each) for each in self.arguments]


def _column(argument: Argument, rows: Sequence[int] | None) -> Any:
    if argument.column:
        array = samples.array_of(argument.column)
        return array if rows is None else array.take(pa.array(rows, pa.int64()))
    if isinstance(argument.bound.literal, LogicalType):
        return pa.scalar(None)
    return pa.scalar(argument.bound.literal, to_arrow(argument.bound.type))


def _spark(argument: Argument) -> str:
    value, kind = argument.bound.literal, argument.bound.type
    if argument.column:
        return argument.column
    if isinstance(value, LogicalType):
        return ""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, datetime.timedelta):
        return argument.text
    if isinstance(value, float):
        return f"DOUBLE('{value}')"
    return f"{value}L" if kind.root is t.TypeRoot.BIGINT else str(value)


def case(function: str, *arguments: str | Argument) -> Case:
    """A call; plain strings are names of columns."""
    return Case(function, tuple(column(each) if isinstance(each, str) else each for each in arguments))


FRAME = Frame(rows=samples.ROWS, zone=samples.ZONE)
