"""How arguments get to the types of a function's parameters."""

from __future__ import annotations

import pyarrow as pa

from headwater.table.functions.casting.arrays import cast_column
from headwater.table.functions.casting.spark import spark_cast_text
from headwater.table.functions.frame import Frame
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType
from headwater.table.types.spark import spark_type


def to_parameter(column: pa.Array | pa.Scalar, source: LogicalType, target: LogicalType, frame: Frame) -> pa.Array:
    """Cast an argument to what the kernel takes. Types that Arrow holds alike need no cast."""
    if to_arrow(source) == to_arrow(target) or isinstance(column, pa.NullScalar):
        return column if column.type == to_arrow(target) else column.cast(to_arrow(target))
    return cast_column(column, source, target, frame.zone)


def spark_cast(text: str, source: LogicalType, target: LogicalType) -> str:
    """Cast an argument in Spark's SQL, where the types differ there."""
    return text if spark_type(source) == spark_type(target) else spark_cast_text(text, source, target)


def repeated(value: pa.Scalar, rows: int) -> pa.Array:
    """The value for every row. (Arrow's own refuses to repeat a map zero times.)"""
    return pa.repeat(value, rows) if rows else pa.array([], value.type)
