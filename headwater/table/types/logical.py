"""The logical types of SQL, as Flink has them: what a value means, not how an engine stores it.

Types are immutable values: two that are equal are the same type. `sql()` is the text that Flink prints for a type in
plans and in `DESCRIBE`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar, TypeVar

MAX_LENGTH = 2_147_483_647
"""The length of STRING and BYTES."""
MAX_DECIMAL_PRECISION = 38
MAX_TIME_PRECISION = 9

_Type = TypeVar("_Type", bound="LogicalType")


class TypeRoot(Enum):
    """What kind of type it is, without its parameters."""

    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BOOLEAN = "BOOLEAN"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    DECIMAL = "DECIMAL"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INTEGER = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"
    INTERVAL_YEAR_MONTH = "INTERVAL YEAR TO MONTH"
    INTERVAL_DAY_TIME = "INTERVAL DAY TO SECOND"
    ARRAY = "ARRAY"
    MULTISET = "MULTISET"
    MAP = "MAP"
    ROW = "ROW"
    RAW = "RAW"
    NULL = "NULL"


@dataclass(frozen=True, kw_only=True)
class LogicalType:
    """Base of all types. Compare types with `==`; with `same_kind` if nullability does not matter."""

    nullable: bool = True

    root: ClassVar[TypeRoot]

    def with_nullable(self: _Type, nullable: bool) -> _Type:
        """Return this type, nullable or not. What it contains stays as it is."""
        return self if self.nullable == nullable else replace(self, nullable=nullable)

    def not_null(self: _Type) -> _Type:
        return self.with_nullable(False)

    def same_kind(self, other: LogicalType) -> bool:
        """Return True if the two differ in nothing but whether they may be null."""
        return self.with_nullable(True) == other.with_nullable(True)

    def name(self) -> str:
        """The text without nullability."""
        return self.root.value

    def sql(self) -> str:
        """The text that Flink prints: `INT`, `VARCHAR(10) NOT NULL`, `ARRAY<INT NOT NULL>`."""
        return self.name() if self.nullable else f"{self.name()} NOT NULL"

    def __str__(self) -> str:
        return self.sql()


def _check(condition: bool, text: str) -> None:
    if not condition:
        raise ValueError(text)


@dataclass(frozen=True)
class _Sized(LogicalType):
    """A type with a length of at least one (0 only for the type of an empty literal)."""

    length: int = 1

    def __post_init__(self) -> None:
        _check(0 <= self.length <= MAX_LENGTH, f"{self.root.value}: length {self.length} is not in 1..{MAX_LENGTH}")

    def name(self) -> str:
        return f"{self.root.value}({self.length})"


@dataclass(frozen=True)
class CharType(_Sized):
    root = TypeRoot.CHAR


@dataclass(frozen=True)
class VarCharType(_Sized):
    root = TypeRoot.VARCHAR
    length: int = MAX_LENGTH

    def name(self) -> str:
        return "STRING" if self.length == MAX_LENGTH else super().name()


@dataclass(frozen=True)
class BinaryType(_Sized):
    root = TypeRoot.BINARY


@dataclass(frozen=True)
class VarBinaryType(_Sized):
    root = TypeRoot.VARBINARY
    length: int = MAX_LENGTH

    def name(self) -> str:
        return "BYTES" if self.length == MAX_LENGTH else super().name()


@dataclass(frozen=True)
class BooleanType(LogicalType):
    root = TypeRoot.BOOLEAN


@dataclass(frozen=True)
class DecimalType(LogicalType):
    root = TypeRoot.DECIMAL
    precision: int = 10
    scale: int = 0

    def __post_init__(self) -> None:
        _check(
            1 <= self.precision <= MAX_DECIMAL_PRECISION,
            f"DECIMAL: precision {self.precision} is not in 1..{MAX_DECIMAL_PRECISION}",
        )
        _check(0 <= self.scale <= self.precision, f"DECIMAL: scale {self.scale} is not in 0..{self.precision}")

    def name(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True)
class TinyIntType(LogicalType):
    root = TypeRoot.TINYINT


@dataclass(frozen=True)
class SmallIntType(LogicalType):
    root = TypeRoot.SMALLINT


@dataclass(frozen=True)
class IntType(LogicalType):
    root = TypeRoot.INTEGER


@dataclass(frozen=True)
class BigIntType(LogicalType):
    root = TypeRoot.BIGINT


@dataclass(frozen=True)
class FloatType(LogicalType):
    root = TypeRoot.FLOAT


@dataclass(frozen=True)
class DoubleType(LogicalType):
    root = TypeRoot.DOUBLE


@dataclass(frozen=True)
class DateType(LogicalType):
    root = TypeRoot.DATE


@dataclass(frozen=True)
class _Timed(LogicalType):
    """A type with a number of digits after the second."""

    precision: int = 6

    def __post_init__(self) -> None:
        _check(
            0 <= self.precision <= MAX_TIME_PRECISION,
            f"{self.root.value}: precision {self.precision} is not in 0..{MAX_TIME_PRECISION}",
        )

    def name(self) -> str:
        return f"{self.root.value}({self.precision})"


@dataclass(frozen=True)
class TimeType(_Timed):
    root = TypeRoot.TIME
    precision: int = 0


class TimeAttribute(Enum):
    """Whether a timestamp column drives time."""

    NONE = ""
    ROWTIME = "*ROWTIME*"
    PROCTIME = "*PROCTIME*"


@dataclass(frozen=True)
class TimestampType(_Timed):
    """A date and a time of day, of no zone."""

    root = TypeRoot.TIMESTAMP
    attribute: TimeAttribute = TimeAttribute.NONE

    def sql(self) -> str:
        return super().sql() + (f" {self.attribute.value}" if self.attribute.value else "")


@dataclass(frozen=True)
class LocalZonedTimestampType(_Timed):
    """A moment, shown in the session's time zone."""

    root = TypeRoot.TIMESTAMP_LTZ
    attribute: TimeAttribute = TimeAttribute.NONE

    def sql(self) -> str:
        return super().sql() + (f" {self.attribute.value}" if self.attribute.value else "")


@dataclass(frozen=True)
class YearMonthIntervalType(LogicalType):
    """Months. `resolution` is the part of Flink's name after INTERVAL; it does not change the value."""

    root = TypeRoot.INTERVAL_YEAR_MONTH
    resolution: str = "YEAR(2) TO MONTH"

    def name(self) -> str:
        return f"INTERVAL {self.resolution}"


@dataclass(frozen=True)
class DayTimeIntervalType(LogicalType):
    """A duration in milliseconds. `resolution` is the part of Flink's name after INTERVAL."""

    root = TypeRoot.INTERVAL_DAY_TIME
    resolution: str = "DAY(2) TO SECOND(6)"

    def name(self) -> str:
        return f"INTERVAL {self.resolution}"


@dataclass(frozen=True)
class ArrayType(LogicalType):
    root = TypeRoot.ARRAY
    element: LogicalType

    def name(self) -> str:
        return f"ARRAY<{self.element.sql()}>"


@dataclass(frozen=True)
class MultisetType(LogicalType):
    root = TypeRoot.MULTISET
    element: LogicalType

    def name(self) -> str:
        return f"MULTISET<{self.element.sql()}>"


@dataclass(frozen=True)
class MapType(LogicalType):
    root = TypeRoot.MAP
    key: LogicalType
    value: LogicalType

    def name(self) -> str:
        return f"MAP<{self.key.sql()}, {self.value.sql()}>"


@dataclass(frozen=True)
class RowField:
    name: str
    type: LogicalType
    description: str | None = None

    def sql(self) -> str:
        text = f"`{self.name.replace('`', '``')}` {self.type.sql()}"
        return text if self.description is None else f"{text} '{self.description}'"


@dataclass(frozen=True)
class RowType(LogicalType):
    root = TypeRoot.ROW
    fields: tuple[RowField, ...] = ()

    def name(self) -> str:
        return f"ROW<{', '.join(field.sql() for field in self.fields)}>"

    def field(self, name: str) -> RowField | None:
        """Return the field of that name (names are case-sensitive, as in Flink), or None."""
        return next((field for field in self.fields if field.name == name), None)


@dataclass(frozen=True)
class RawType(LogicalType):
    """A Python object that SQL only carries. It is pickled where it is stored."""

    root = TypeRoot.RAW

    def name(self) -> str:
        return "RAW('object')"


@dataclass(frozen=True)
class NullType(LogicalType):
    """The type of the literal NULL before anything tells what it should be."""

    root = TypeRoot.NULL

    def __post_init__(self) -> None:
        _check(self.nullable, "NULL cannot be NOT NULL")


INTEGER_ROOTS = (TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INTEGER, TypeRoot.BIGINT)
APPROXIMATE_ROOTS = (TypeRoot.FLOAT, TypeRoot.DOUBLE)
NUMERIC_ROOTS = (*INTEGER_ROOTS, TypeRoot.DECIMAL, *APPROXIMATE_ROOTS)
STRING_ROOTS = (TypeRoot.CHAR, TypeRoot.VARCHAR)
BINARY_ROOTS = (TypeRoot.BINARY, TypeRoot.VARBINARY)
TIMESTAMP_ROOTS = (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
INTERVAL_ROOTS = (TypeRoot.INTERVAL_YEAR_MONTH, TypeRoot.INTERVAL_DAY_TIME)
TEMPORAL_ROOTS = (TypeRoot.DATE, TypeRoot.TIME, *TIMESTAMP_ROOTS)


def is_numeric(of: LogicalType) -> bool:
    return of.root in NUMERIC_ROOTS


def is_integer(of: LogicalType) -> bool:
    return of.root in INTEGER_ROOTS


def is_exact(of: LogicalType) -> bool:
    return of.root in INTEGER_ROOTS or of.root is TypeRoot.DECIMAL


def is_string(of: LogicalType) -> bool:
    return of.root in STRING_ROOTS


def is_binary(of: LogicalType) -> bool:
    return of.root in BINARY_ROOTS


def is_interval(of: LogicalType) -> bool:
    return of.root in INTERVAL_ROOTS


def is_temporal(of: LogicalType) -> bool:
    return of.root in TEMPORAL_ROOTS


STRING = VarCharType()
BYTES = VarBinaryType()
BOOLEAN = BooleanType()
TINYINT = TinyIntType()
SMALLINT = SmallIntType()
INT = IntType()
BIGINT = BigIntType()
FLOAT = FloatType()
DOUBLE = DoubleType()
DATE = DateType()
NULL = NullType()
