"""The text of a type in Spark's SQL.

Spark has no type for some: TIME is milliseconds of the day (INT), INTERVAL YEAR TO MONTH is months (INT), a MULTISET is
a map of element to count, RAW is bytes.
Spark counts microseconds, so digits beyond the sixth of a timestamp are cut off there.
"""

from __future__ import annotations

from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType, TypeRoot

_PLAIN = {
    TypeRoot.CHAR: "STRING",
    TypeRoot.VARCHAR: "STRING",
    TypeRoot.BOOLEAN: "BOOLEAN",
    TypeRoot.BINARY: "BINARY",
    TypeRoot.VARBINARY: "BINARY",
    TypeRoot.TINYINT: "TINYINT",
    TypeRoot.SMALLINT: "SMALLINT",
    TypeRoot.INTEGER: "INT",
    TypeRoot.BIGINT: "BIGINT",
    TypeRoot.FLOAT: "FLOAT",
    TypeRoot.DOUBLE: "DOUBLE",
    TypeRoot.DATE: "DATE",
    TypeRoot.TIME: "INT",
    TypeRoot.TIMESTAMP: "TIMESTAMP_NTZ",
    TypeRoot.TIMESTAMP_LTZ: "TIMESTAMP",
    TypeRoot.INTERVAL_YEAR_MONTH: "INT",
    TypeRoot.INTERVAL_DAY_TIME: "INTERVAL DAY TO SECOND",
    TypeRoot.RAW: "BINARY",
    TypeRoot.NULL: "VOID",
}


def spark_type(of: LogicalType) -> str:
    """Return the type of Spark that holds values of `of`, as text for a CAST or a schema."""
    plain = _PLAIN.get(of.root)
    if plain is not None:
        return plain
    if isinstance(of, t.DecimalType):
        return f"DECIMAL({of.precision},{of.scale})"
    if isinstance(of, t.ArrayType):
        return f"ARRAY<{spark_type(of.element)}>"
    if isinstance(of, t.MultisetType):
        return f"MAP<{spark_type(of.element)},INT>"
    if isinstance(of, t.MapType):
        return f"MAP<{spark_type(of.key)},{spark_type(of.value)}>"
    if isinstance(of, t.RowType):
        fields = (f"`{each.name.replace('`', '``')}`: {spark_type(each.type)}" for each in of.fields)
        return f"STRUCT<{', '.join(fields)}>"
    raise TypeError(f"no type of Spark holds {of.sql()}")
