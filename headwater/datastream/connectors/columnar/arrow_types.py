"""Types of rows as types of Arrow, for formats that store columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from headwater.common.errors import ConfigurationError
from headwater.common.type_system.information import (
    ARRAYS,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)

_BASIC: Final = {
    BasicType.STRING: "string",
    BasicType.CHAR: "string",
    BasicType.BOOLEAN: "bool_",
    BasicType.BYTE: "int8",
    BasicType.SHORT: "int16",
    BasicType.INT: "int32",
    BasicType.LONG: "int64",
    BasicType.FLOAT: "float32",
    BasicType.DOUBLE: "float64",
}
_DECIMAL_DIGITS: Final = 38
_DECIMAL_SCALE: Final = 18
"""Of a decimal whose type says neither, as in Flink."""


def arrow_schema(row_type: Any) -> Any:
    """The pyarrow.Schema of a row type: `Types.ROW_NAMED`, the Table API's `DataTypes.ROW`, or a pyarrow.Schema."""
    import pyarrow

    if isinstance(row_type, pyarrow.Schema):
        return row_type
    if isinstance(row_type, RowTypeInfo):
        return pyarrow.schema(_fields_of(row_type))
    if type(row_type).__name__ == "RowType" and hasattr(row_type, "fields"):
        return pyarrow.schema(_table_fields(row_type))
    raise ConfigurationError(
        f"expected a type of rows, found {row_type!r}; make one with Types.ROW_NAMED(names, types), or a pyarrow.schema"
    )


def _fields_of(row_type: RowTypeInfo | TupleTypeInfo) -> list[tuple[str, Any]]:
    types = row_type.get_field_types()
    names = row_type.get_field_names() if isinstance(row_type, RowTypeInfo) else [f"f{i}" for i in range(len(types))]
    return [(name, _arrow_type(name, each)) for name, each in zip(names, types, strict=True)]


def _arrow_type(field: str, type_info: TypeInformation) -> Any:
    import pyarrow

    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        return pyarrow.struct(_fields_of(type_info))
    if isinstance(type_info, MapTypeInfo):
        return pyarrow.map_(_arrow_type(field, type_info.key_type), _arrow_type(field, type_info.value_type))
    if isinstance(type_info, PrimitiveArrayTypeInfo) and type_info.element_type == BasicTypeInfo.BYTE_TYPE_INFO():
        return pyarrow.binary()
    if isinstance(type_info, ARRAYS):
        return pyarrow.list_(_arrow_type(field, type_info.element_type))
    if isinstance(type_info, DateTypeInfo):
        return pyarrow.date32()
    if isinstance(type_info, TimeTypeInfo):
        return pyarrow.time64("us")
    if isinstance(type_info, TimestampTypeInfo):
        return pyarrow.timestamp("us")
    if isinstance(type_info, BasicTypeInfo):
        basic = type_info.basic_type
        if basic in _BASIC:
            return getattr(pyarrow, _BASIC[basic])()
        if basic in (BasicType.BIG_DEC, BasicType.BIG_INT):
            scale = _DECIMAL_SCALE if basic is BasicType.BIG_DEC else 0
            return pyarrow.decimal128(_DECIMAL_DIGITS, scale)
    raise ConfigurationError(
        f"field {field!r}: {type_info!r} has no form in a column; expected basic types but INSTANT, dates and times, "
        "arrays, maps and rows"
    )


# The Table API is a layer of its own, above this one: its types are known here by the names of their classes.
_TABLE_TYPES: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "BooleanType": lambda arrow, of: arrow.bool_(),
    "TinyIntType": lambda arrow, of: arrow.int8(),
    "SmallIntType": lambda arrow, of: arrow.int16(),
    "IntType": lambda arrow, of: arrow.int32(),
    "BigIntType": lambda arrow, of: arrow.int64(),
    "FloatType": lambda arrow, of: arrow.float32(),
    "DoubleType": lambda arrow, of: arrow.float64(),
    "CharType": lambda arrow, of: arrow.string(),
    "VarCharType": lambda arrow, of: arrow.string(),
    "BinaryType": lambda arrow, of: arrow.binary(),
    "VarBinaryType": lambda arrow, of: arrow.binary(),
    "DecimalType": lambda arrow, of: arrow.decimal128(of.precision, of.scale),
    "DateType": lambda arrow, of: arrow.date32(),
    "TimeType": lambda arrow, of: arrow.time64("us"),
    "TimestampType": lambda arrow, of: arrow.timestamp("us"),
    "LocalZonedTimestampType": lambda arrow, of: arrow.timestamp("us", "UTC"),
}


def _table_fields(row_type: Any) -> list[Any]:
    import pyarrow

    return [pyarrow.field(each.name, _table_type(each.name, each.type)) for each in row_type.fields]


def _table_type(field: str, data_type: Any) -> Any:
    import pyarrow

    name = type(data_type).__name__
    if name == "RowType":
        return pyarrow.struct(_table_fields(data_type))
    if name == "ArrayType":
        return pyarrow.list_(_table_type(field, data_type.element))
    if name == "MapType":
        return pyarrow.map_(_table_type(field, data_type.key), _table_type(field, data_type.value))
    if name not in _TABLE_TYPES:
        raise ConfigurationError(f"field {field!r}: {data_type!r} has no form in a column")
    return _TABLE_TYPES[name](pyarrow, data_type)
