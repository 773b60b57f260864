"""Rows of Arrow as tuples that can be keys of a dict and values of state, and back.

Equal rows give equal tuples: times become their integers, NaN becomes one object, lists and structs become tuples.
Rows in state have this form. It is persisted: change it only with a new version of the state's name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

NAN = "NaN"
"""Stands for a NaN, which is not equal to itself."""


def frozen_rows(rows: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """Each row as a tuple of values that hash and compare as SQL groups them."""
    if not rows.num_columns:
        return [()] * rows.num_rows
    return list(zip(*(frozen_column(column) for column in rows.columns), strict=True))


def frozen_column(column: pa.Array) -> list[Any]:
    kind = column.type
    stored = _storage(kind)
    if stored is not None:
        return list(column.view(stored).to_pylist())
    if pa.types.is_floating(kind):
        return [NAN if value is not None and math.isnan(value) else value for value in column.to_pylist()]
    if pa.types.is_nested(kind):
        return [_frozen(value) for value in column.to_pylist()]
    return list(column.to_pylist())


def integers_of(column: pa.Array) -> np.ndarray | None:
    """The values of `frozen_column` as a new array of int64; None if they are not integers, or one is NULL."""
    kind = _storage(column.type) or column.type
    if column.null_count or not len(column) or not pa.types.is_signed_integer(kind):
        return None
    return np.array(column.view(kind).to_numpy(), np.int64)


def thawed_rows(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """The rows of `frozen_rows`, as columns again."""
    if not len(schema):
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [thawed_column(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def thawed_column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    stored = _storage(kind)
    if stored is not None:
        return pa.array(values, stored).view(kind)
    if pa.types.is_floating(kind):
        return pa.array([math.nan if value == NAN else value for value in values], kind)
    if pa.types.is_nested(kind) and _has_floats(kind):
        return pa.array([_thawed(value, kind) for value in values], kind)
    return pa.array(values, kind)


def _has_floats(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind)) or any(_has_floats(kind.field(at).type) for at in range(kind.num_fields))


def _thawed(value: Any, kind: pa.DataType) -> Any:
    """A nested value with its NaNs. The type tells a NaN from text that says so."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return tuple(_thawed(each, kind.field(at).type) for at, each in enumerate(value))
    if pa.types.is_map(kind):
        return [(_thawed(key, kind.key_type), _thawed(each, kind.item_type)) for key, each in value]
    if pa.types.is_nested(kind):
        return [_thawed(each, kind.value_type) for each in value]
    return math.nan if pa.types.is_floating(kind) and value == NAN else value


def thawed_integers(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    """The column of which `integers_of` made these."""
    return pa.array(values, pa.int64()).cast(_storage(kind) or kind).view(kind)


def is_frozen_as_integer(kind: pa.DataType) -> bool:
    return _storage(kind) is not None


def _storage(kind: pa.DataType) -> pa.DataType | None:
    """The integers that times are; None for all else."""
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    return None


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(_frozen(each) for each in value.values())
    if isinstance(value, list | tuple):
        return tuple(_frozen(each) for each in value)
    return NAN if isinstance(value, float) and math.isnan(value) else value
