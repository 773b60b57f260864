"""How Arrow columns hold SQL values.

CHAR, VARCHAR      string             DATE             date32
BINARY, VARBINARY  binary             TIME             time32[ms]
TINYINT ... BIGINT int8 ... int64     TIMESTAMP(p)     timestamp[us], above 6 digits timestamp[ns]
FLOAT, DOUBLE      float, double      TIMESTAMP_LTZ(p) the same in UTC
DECIMAL(p, s)      decimal128(p, s)   INTERVAL months  int32; INTERVAL DAY TO SECOND  duration[us]
ARRAY              list               ROW              struct
MAP                map                MULTISET         map of element to int32
"""

from __future__ import annotations

import pyarrow as pa

from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType, TypeRoot

_PLAIN = {
    TypeRoot.CHAR: pa.string(),
    TypeRoot.VARCHAR: pa.string(),
    TypeRoot.BOOLEAN: pa.bool_(),
    TypeRoot.BINARY: pa.binary(),
    TypeRoot.VARBINARY: pa.binary(),
    TypeRoot.TINYINT: pa.int8(),
    TypeRoot.SMALLINT: pa.int16(),
    TypeRoot.INTEGER: pa.int32(),
    TypeRoot.BIGINT: pa.int64(),
    TypeRoot.FLOAT: pa.float32(),
    TypeRoot.DOUBLE: pa.float64(),
    TypeRoot.DATE: pa.date32(),
    TypeRoot.TIME: pa.time32("ms"),
    TypeRoot.INTERVAL_YEAR_MONTH: pa.int32(),
    TypeRoot.INTERVAL_DAY_TIME: pa.duration("us"),
    TypeRoot.RAW: pa.binary(),
    TypeRoot.NULL: pa.null(),
}

MICROSECOND_DIGITS = 6


def to_arrow(of: LogicalType) -> pa.DataType:
    """Return the Arrow type that holds values of `of`."""
    plain = _PLAIN.get(of.root)
    if plain is not None:
        return plain
    if isinstance(of, t.DecimalType):
        return pa.decimal128(of.precision, of.scale)
    if isinstance(of, t.TimestampType):
        return pa.timestamp(_unit(of.precision))
    if isinstance(of, t.LocalZonedTimestampType):
        return pa.timestamp(_unit(of.precision), "UTC")
    if isinstance(of, t.ArrayType):
        return pa.list_(pa.field("item", to_arrow(of.element), of.element.nullable))
    if isinstance(of, t.MultisetType):
        return pa.map_(to_arrow(of.element), pa.field("value", pa.int32(), False))
    if isinstance(of, t.MapType):
        return pa.map_(to_arrow(of.key), pa.field("value", to_arrow(of.value), of.value.nullable))
    if isinstance(of, t.RowType):
        return pa.struct([pa.field(each.name, to_arrow(each.type), each.type.nullable) for each in of.fields])
    raise TypeError(f"no Arrow type holds {of.sql()}")


def _unit(precision: int) -> str:
    return "us" if precision <= MICROSECOND_DIGITS else "ns"


_FROM_PLAIN: dict[pa.DataType, LogicalType] = {
    pa.string(): t.STRING,
    pa.large_string(): t.STRING,
    pa.string_view(): t.STRING,
    pa.bool_(): t.BOOLEAN,
    pa.binary(): t.BYTES,
    pa.large_binary(): t.BYTES,
    pa.int8(): t.TINYINT,
    pa.int16(): t.SMALLINT,
    pa.int32(): t.INT,
    pa.int64(): t.BIGINT,
    pa.uint8(): t.SMALLINT,
    pa.uint16(): t.INT,
    pa.uint32(): t.BIGINT,
    pa.uint64(): t.DecimalType(precision=20, scale=0),
    pa.float32(): t.FLOAT,
    pa.float64(): t.DOUBLE,
    pa.date32(): t.DATE,
    pa.date64(): t.DATE,
    pa.null(): t.NULL,
}

_DIGITS_OF_UNIT = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def from_arrow(of: pa.DataType, nullable: bool = True) -> LogicalType:
    """Return the SQL type of a column that comes from outside (pandas, Parquet, Spark). The values may need a cast.

    An Arrow type that SQL has no type for is a TypeError.
    """
    found = _from_arrow(of)
    return found if found.root is TypeRoot.NULL else found.with_nullable(nullable)


def _from_arrow(of: pa.DataType) -> LogicalType:
    plain = _FROM_PLAIN.get(of)
    if plain is not None:
        return plain
    kinds = pa.types
    if kinds.is_dictionary(of):
        return _from_arrow(of.value_type)
    if kinds.is_decimal(of) and of.precision <= t.MAX_DECIMAL_PRECISION and 0 <= of.scale <= of.precision:
        return t.DecimalType(precision=of.precision, scale=of.scale)
    if kinds.is_fixed_size_binary(of):
        return t.BinaryType(length=of.byte_width)
    if kinds.is_time(of):
        return t.TimeType(precision=_DIGITS_OF_UNIT[of.unit])
    if kinds.is_timestamp(of):
        digits = _DIGITS_OF_UNIT[of.unit]
        return t.TimestampType(precision=digits) if of.tz is None else t.LocalZonedTimestampType(precision=digits)
    if kinds.is_duration(of):
        return t.DayTimeIntervalType()
    if kinds.is_map(of):
        return t.MapType(key=from_arrow(of.key_type, False), value=from_arrow(of.item_type, of.item_field.nullable))
    if kinds.is_list(of) or kinds.is_large_list(of) or kinds.is_fixed_size_list(of):
        return t.ArrayType(element=from_arrow(of.value_type, of.value_field.nullable))
    if kinds.is_struct(of):
        return t.RowType(fields=tuple(t.RowField(each.name, from_arrow(each.type, each.nullable)) for each in of))
    raise TypeError(f"SQL has no type for Arrow's {of}; convert the column first")


def schema_to_arrow(of: t.RowType) -> pa.Schema:
    """Return the schema of a table with the columns of `of`."""
    return pa.schema([pa.field(each.name, to_arrow(each.type), each.type.nullable) for each in of.fields])
