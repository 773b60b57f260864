"""Values of columns as programs see them, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headwater.common.errors import SqlError, short_repr
from headwater.common.types import Row
from headwater.table.batch.rows import to_python
from headwater.table.types import logical as t
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType

_NESTED = (t.RowType, t.ArrayType, t.MapType, t.MultisetType)


def python_values(column: pa.Array | pa.Scalar, type_: LogicalType, rows: int) -> list[Any]:
    """The values of an argument: one per row."""
    if isinstance(column, pa.Scalar):
        return [to_python(column.as_py(), type_)] * rows
    values = column.to_pylist()
    return [to_python(value, type_) for value in values] if isinstance(type_, _NESTED) else values


def column_of(values: Sequence[Any], type_: LogicalType, name: str) -> pa.Array:
    """What a function gave, as a column. SqlError that names the first value that is none of the type."""
    kind = to_arrow(type_)
    given = [_plain(value, type_) for value in values] if isinstance(type_, _NESTED) else values
    try:
        return pa.array(given, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError, OverflowError):
        for value, plain in zip(values, given, strict=True):
            try:
                pa.array([plain], kind)
            except Exception as error:
                raise SqlError(
                    f"function {name} gave {short_repr(value)} ({type(value).__name__}), its result type is"
                    f" {type_.sql()}: {error}"
                ) from None
        raise


def _plain(value: Any, type_: LogicalType) -> Any:
    """A value in the form that Arrow takes."""
    if value is None:
        return None
    match type_:
        case t.RowType():
            if isinstance(value, dict):
                return {each.name: _plain(value.get(each.name), each.type) for each in type_.fields}
            values = list(value) if isinstance(value, Row | tuple | list) else [value]
            if len(values) != len(type_.fields):
                raise SqlError(f"{short_repr(value)} has {len(values)} fields, {type_.sql()} has {len(type_.fields)}")
            return {each.name: _plain(v, each.type) for each, v in zip(type_.fields, values, strict=True)}
        case t.ArrayType():
            return [_plain(each, type_.element) for each in value]
        case t.MapType():
            return [(_plain(key, type_.key), _plain(each, type_.value)) for key, each in value.items()]
        case t.MultisetType():
            return [(_plain(key, type_.element), count) for key, count in value.items()]
    return value
