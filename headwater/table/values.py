"""Tables of Python values: which types they have, and how they become columns."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.common.types import Row
from headwater.table.types import casts
from headwater.table.types import logical as t
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType, RowField, RowType

_TYPES: tuple[tuple[type, LogicalType], ...] = (
    (bool, t.BOOLEAN),
    (int, t.BIGINT),
    (float, t.DOUBLE),
    (str, t.STRING),
    (bytes, t.BYTES),
    (bytearray, t.BYTES),
    (decimal.Decimal, t.DecimalType(precision=38, scale=18)),
    (datetime.datetime, t.TimestampType(precision=6)),
    (datetime.date, t.DATE),
    (datetime.time, t.TimeType(precision=0)),
)
"""As PyFlink infers them: every int is a BIGINT, every float a DOUBLE."""


def inferred_type(value: Any) -> LogicalType:
    if value is None:
        return t.NULL
    for kind, type_ in _TYPES:
        if isinstance(value, kind):
            return type_
    if isinstance(value, list):
        return t.ArrayType(element=_common([inferred_type(each) for each in value]))
    if isinstance(value, dict):
        keys = _common([inferred_type(each) for each in value])
        return t.MapType(key=keys, value=_common([inferred_type(each) for each in value.values()]))
    if isinstance(value, Row | tuple):
        names = _names(value)
        fields = (RowField(name, inferred_type(each)) for name, each in zip(names, value, strict=True))
        return RowType(fields=tuple(fields))
    raise SqlError(f"SQL has no type for {value!r} ({type(value).__name__}); give from_elements() a schema")


def _common(types: Sequence[LogicalType]) -> LogicalType:
    found = casts.common_type(types)
    if found is None:
        raise SqlError(f"values of {', '.join(dict.fromkeys(each.sql() for each in types))} do not go together")
    return found


def _names(row: Any) -> list[str]:
    names = row.get_fields_names() if isinstance(row, Row) and hasattr(row, "get_fields_names") else None
    if names is None and isinstance(row, Row):
        names = getattr(row, "_fields", None)
    return list(names) if names else [f"f{place}" for place in range(len(row))]


def inferred_row_type(rows: Sequence[Any], names: Sequence[str] | None) -> RowType:
    """The type of rows without a schema. PyFlink calls their columns _1, _2 and so on."""
    if not rows:
        raise SqlError("from_elements() of nothing needs a schema with types")
    if isinstance(rows[0], dict):
        keys = list(rows[0])
        fields = [RowField(key, _common([inferred_type(row.get(key)) for row in rows])) for key in keys]
        return RowType(fields=tuple(fields), nullable=False)
    width = len(_values(rows[0]))
    known = getattr(rows[0], "_fields", None) if isinstance(rows[0], Row) else None
    chosen = list(names or known or (f"_{place + 1}" for place in range(width)))
    if len(chosen) != width:
        raise SqlError(f"from_elements(): {len(chosen)} names for rows of {width} values")
    fields = []
    for place, name in enumerate(chosen):
        type_ = _common([inferred_type(_values(row)[place]) for row in rows])
        if type_.root is t.TypeRoot.NULL:
            raise SqlError(f"column '{name}' has only None; give from_elements() a schema with types")
        fields.append(RowField(name, type_))
    return RowType(fields=tuple(fields), nullable=False)


def _values(row: Any) -> Sequence[Any]:
    if isinstance(row, tuple | list | Row):
        return list(row)
    return [row]


def columns_of(rows: Sequence[Any], row_type: RowType, verify: bool = True) -> pa.Table:
    """The rows as Arrow columns. A value that does not fit its column is a SqlError that names row and column."""
    columns: list[list[Any]] = [[] for _ in row_type.fields]
    for number, row in enumerate(rows):
        values = [row.get(each.name) for each in row_type.fields] if isinstance(row, dict) else _values(row)
        if len(values) != len(row_type.fields):
            raise SqlError(f"row {number} has {len(values)} values, the schema {len(row_type.fields)} columns")
        for column, value, each in zip(columns, values, row_type.fields, strict=True):
            if value is None and not each.type.nullable:
                raise SqlError(f"row {number}: column '{each.name}' is {each.type.sql()} and gets None")
            column.append(_plain(value))
    arrays = []
    for values, each in zip(columns, row_type.fields, strict=True):
        try:
            arrays.append(pa.array(values, to_arrow(each.type)))
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
            raise SqlError(f"column '{each.name}' is {each.type.sql()}: {error}") from None
    return pa.table(arrays, names=[each.name for each in row_type.fields])


def _plain(value: Any) -> Any:
    """Rows as Arrow wants them: dictionaries by name."""
    if isinstance(value, Row):
        return {name: _plain(each) for name, each in zip(_names(value), value, strict=True)}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return [(_plain(key), _plain(each)) for key, each in value.items()]
    return value
