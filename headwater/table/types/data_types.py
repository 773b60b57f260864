"""`DataTypes`, as in pyflink.table: where programs of the Table API get types from. They are the logical types."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType
from headwater.table.types.type_text import parse_type

DataType = LogicalType
"""PyFlink's name of the class."""


class Resolution:
    """A part of an interval: `DataTypes.DAY(3)`."""

    def __init__(self, unit: str, precision: int | None = None) -> None:
        self.unit = unit
        self.precision = precision

    def __str__(self) -> str:
        return self.unit if self.precision is None else f"{self.unit}({self.precision})"


class DataTypes:
    """All types of SQL by their names: `DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT(False))])`."""

    @staticmethod
    def of(text: str) -> LogicalType:
        """The type that SQL text means: `DataTypes.of("DECIMAL(10, 2) NOT NULL")`."""
        return parse_type(text)

    @staticmethod
    def NULL() -> t.NullType:
        return t.NULL

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> t.CharType:
        return t.CharType(length=length, nullable=nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> t.VarCharType:
        return t.VarCharType(length=length, nullable=nullable)

    @staticmethod
    def STRING(nullable: bool = True) -> t.VarCharType:
        return t.STRING.with_nullable(nullable)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> t.BooleanType:
        return t.BOOLEAN.with_nullable(nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> t.BinaryType:
        return t.BinaryType(length=length, nullable=nullable)

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> t.VarBinaryType:
        return t.VarBinaryType(length=length, nullable=nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> t.VarBinaryType:
        return t.BYTES.with_nullable(nullable)

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> t.DecimalType:
        return t.DecimalType(precision=precision, scale=scale, nullable=nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> t.TinyIntType:
        return t.TINYINT.with_nullable(nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> t.SmallIntType:
        return t.SMALLINT.with_nullable(nullable)

    @staticmethod
    def INT(nullable: bool = True) -> t.IntType:
        return t.INT.with_nullable(nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> t.BigIntType:
        return t.BIGINT.with_nullable(nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> t.FloatType:
        return t.FLOAT.with_nullable(nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> t.DoubleType:
        return t.DOUBLE.with_nullable(nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> t.DateType:
        return t.DATE.with_nullable(nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> t.TimeType:
        return t.TimeType(precision=precision, nullable=nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> t.TimestampType:
        return t.TimestampType(precision=precision, nullable=nullable)

    @staticmethod
    def TIMESTAMP_WITH_LOCAL_TIME_ZONE(precision: int = 6, nullable: bool = True) -> t.LocalZonedTimestampType:
        return t.LocalZonedTimestampType(precision=precision, nullable=nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> t.LocalZonedTimestampType:
        return t.LocalZonedTimestampType(precision=precision, nullable=nullable)

    @staticmethod
    def ARRAY(element_type: LogicalType, nullable: bool = True) -> t.ArrayType:
        return t.ArrayType(element=element_type, nullable=nullable)

    @staticmethod
    def LIST_VIEW(element_type: LogicalType) -> t.ArrayType:
        return t.ArrayType(element=element_type)

    @staticmethod
    def MAP(key_type: LogicalType, value_type: LogicalType, nullable: bool = True) -> t.MapType:
        return t.MapType(key=key_type, value=value_type, nullable=nullable)

    @staticmethod
    def MAP_VIEW(key_type: LogicalType, value_type: LogicalType) -> t.MapType:
        return t.MapType(key=key_type, value=value_type)

    @staticmethod
    def MULTISET(element_type: LogicalType, nullable: bool = True) -> t.MultisetType:
        return t.MultisetType(element=element_type, nullable=nullable)

    @staticmethod
    def ROW(row_fields: Sequence[t.RowField | LogicalType] = (), nullable: bool = True) -> t.RowType:
        """A row of fields; plain types get the names f0, f1 and so on."""
        fields = tuple(
            each if isinstance(each, t.RowField) else t.RowField(f"f{at}", each) for at, each in enumerate(row_fields)
        )
        return t.RowType(fields=fields, nullable=nullable)

    @staticmethod
    def FIELD(name: str, data_type: LogicalType, description: str | None = None) -> t.RowField:
        return t.RowField(name, data_type, description)

    @staticmethod
    def SECOND(precision: int = 6) -> Resolution:
        return Resolution("SECOND", precision)

    @staticmethod
    def MINUTE() -> Resolution:
        return Resolution("MINUTE")

    @staticmethod
    def HOUR() -> Resolution:
        return Resolution("HOUR")

    @staticmethod
    def DAY(precision: int = 2) -> Resolution:
        return Resolution("DAY", precision)

    @staticmethod
    def MONTH() -> Resolution:
        return Resolution("MONTH")

    @staticmethod
    def YEAR(precision: int = 2) -> Resolution:
        return Resolution("YEAR", precision)

    @staticmethod
    def INTERVAL(upper_resolution: Resolution, lower_resolution: Resolution | None = None) -> LogicalType:
        text = str(upper_resolution) if lower_resolution is None else f"{upper_resolution} TO {lower_resolution}"
        if upper_resolution.unit in ("YEAR", "MONTH"):
            return t.YearMonthIntervalType(resolution=text)
        return t.DayTimeIntervalType(resolution=text)
