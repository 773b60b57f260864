"""Between the types of SQL and the types of DataStream's records (headwater.common.typeinfo)."""

from __future__ import annotations

from collections.abc import Callable

from headwater.common import typeinfo
from headwater.common.typeinfo import TypeInformation, Types
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType

_INFORMATION_OF: dict[t.TypeRoot, Callable[[], TypeInformation]] = {
    t.TypeRoot.CHAR: Types.STRING,
    t.TypeRoot.VARCHAR: Types.STRING,
    t.TypeRoot.BOOLEAN: Types.BOOLEAN,
    t.TypeRoot.BINARY: lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    t.TypeRoot.VARBINARY: lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    t.TypeRoot.DECIMAL: Types.BIG_DEC,
    t.TypeRoot.TINYINT: Types.BYTE,
    t.TypeRoot.SMALLINT: Types.SHORT,
    t.TypeRoot.INTEGER: Types.INT,
    t.TypeRoot.BIGINT: Types.LONG,
    t.TypeRoot.FLOAT: Types.FLOAT,
    t.TypeRoot.DOUBLE: Types.DOUBLE,
    t.TypeRoot.DATE: Types.SQL_DATE,
    t.TypeRoot.TIME: Types.SQL_TIME,
    t.TypeRoot.TIMESTAMP: Types.SQL_TIMESTAMP,
    t.TypeRoot.TIMESTAMP_LTZ: Types.INSTANT,
    t.TypeRoot.RAW: Types.PICKLED_BYTE_ARRAY,
}


def to_type_information(of: LogicalType) -> TypeInformation:
    """Return the type of a DataStream's records that hold values of `of`."""
    if of.root in _INFORMATION_OF:
        return _INFORMATION_OF[of.root]()
    if isinstance(of, t.ArrayType):
        return Types.OBJECT_ARRAY(to_type_information(of.element))
    if isinstance(of, t.MapType):
        return Types.MAP(to_type_information(of.key), to_type_information(of.value))
    if isinstance(of, t.MultisetType):
        return Types.MAP(to_type_information(of.element), Types.INT())
    if isinstance(of, t.RowType):
        names = [each.name for each in of.fields]
        return Types.ROW_NAMED(names, [to_type_information(each.type) for each in of.fields])
    raise TypeError(f"a DataStream has no type for {of.sql()}; cast the column first")


_LOGICAL_OF: dict[str, LogicalType] = {
    "STRING": t.STRING,
    "BOOLEAN": t.BOOLEAN,
    "BYTE": t.TINYINT,
    "SHORT": t.SMALLINT,
    "INT": t.INT,
    "LONG": t.BIGINT,
    "FLOAT": t.FLOAT,
    "DOUBLE": t.DOUBLE,
    "BIG_DEC": t.DecimalType(precision=38, scale=18),
    "BIG_INT": t.DecimalType(precision=38, scale=0),
    "CHAR": t.CharType(length=1),
    "INSTANT": t.LocalZonedTimestampType(precision=9),
}


def from_type_information(of: TypeInformation) -> LogicalType:
    """Return the SQL type of a DataStream's records of type `of`. Python objects that SQL cannot look into are RAW."""
    if isinstance(of, typeinfo.BasicTypeInfo):
        return _LOGICAL_OF.get(of.basic_type.name, t.RawType())
    if isinstance(of, typeinfo.RowTypeInfo):
        names, types = of.get_field_names(), of.get_field_types()
        fields = (t.RowField(name, from_type_information(kind)) for name, kind in zip(names, types, strict=True))
        return t.RowType(fields=tuple(fields))
    if isinstance(of, typeinfo.TupleTypeInfo):
        kinds = enumerate(of.get_field_types())
        return t.RowType(fields=tuple(t.RowField(f"f{at}", from_type_information(kind)) for at, kind in kinds))
    if isinstance(of, typeinfo.MapTypeInfo):
        return t.MapType(key=from_type_information(of.key_type), value=from_type_information(of.value_type))
    if isinstance(of, typeinfo.PrimitiveArrayTypeInfo) and of.element_type == Types.BYTE():
        return t.BYTES
    if isinstance(
        of,
        typeinfo.PrimitiveArrayTypeInfo
        | typeinfo.BasicArrayTypeInfo
        | typeinfo.ObjectArrayTypeInfo
        | typeinfo.ListTypeInfo,
    ):
        return t.ArrayType(element=from_type_information(of.element_type))
    return next((kind for information, kind in _TIMES if of == information), t.RawType())


_TIMES: tuple[tuple[TypeInformation, LogicalType], ...] = (
    (Types.SQL_DATE(), t.DATE),
    (Types.SQL_TIME(), t.TimeType(precision=0)),
    (Types.SQL_TIMESTAMP(), t.TimestampType(precision=3)),
)
