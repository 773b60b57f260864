"""Python's values as columns of Arrow and back. Checks what Arrow changes in silence: 1.5 as the int 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from headwater.common.errors import SerializationError, short_repr
from headwater.common.types import Row, named_row

Convert: TypeAlias = Callable[[Any], Any]
"""Raises ValueError for a value that does not fit. Never gets None."""


def to_table(rows: Sequence[Sequence[Any]], schema: Any, what: str) -> Any:
    """A pyarrow.Table of `rows`. SerializationError, which names field and value, if one does not fit.

    :param what: what is written, for the error: "Parquet".
    """
    import pyarrow

    columns = []
    for index, field in enumerate(schema):
        values = [row[index] for row in rows]
        try:
            columns.append(_column(values, field.type))
        except (pyarrow.ArrowException, ValueError, TypeError, OverflowError, AttributeError):
            raise _misfit(rows, index, field, what) from None
    return pyarrow.table(columns, schema=schema)


def _column(values: list[Any], arrow_type: Any) -> Any:
    import pyarrow

    convert = _to_arrow(arrow_type)
    if convert is not None:
        values = [None if value is None else convert(value) for value in values]
    return pyarrow.array(values, type=arrow_type)


def _misfit(rows: Sequence[Sequence[Any]], index: int, field: Any, what: str) -> SerializationError:
    import pyarrow

    for row in rows:
        try:
            _column([row[index]], field.type)
        except (pyarrow.ArrowException, ValueError, TypeError, OverflowError, AttributeError) as error:
            return SerializationError(
                f"{what}: field {field.name!r} is {field.type}, found {type(row[index]).__name__} "
                f"{short_repr(row[index], 100)}: {error}; the record is {short_repr(list(row))}"
            )
    return SerializationError(f"{what}: the values of field {field.name!r} do not fit into one column of {field.type}")


def _to_arrow(arrow_type: Any) -> Convert | None:
    """What a value must go through before Arrow gets it; None: nothing."""
    from pyarrow import types

    if types.is_integer(arrow_type):
        return _whole
    if types.is_struct(arrow_type):
        names = [field.name for field in arrow_type]
        converters = [_to_arrow(field.type) for field in arrow_type]
        return lambda value: _struct(value, names, converters)
    if types.is_map(arrow_type):
        item = _to_arrow(arrow_type.item_type)
        return lambda entries: [(key, _through(item, value)) for key, value in entries.items()]
    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        item = _to_arrow(arrow_type.value_type)
        return None if item is None else lambda values: [_through(item, value) for value in values]
    return None


def _through(convert: Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _whole(value: Any) -> Any:
    if type(value) is not int and (isinstance(value, bool) or not hasattr(value, "__index__")):
        raise ValueError("it is no whole number")
    return value


def _struct(value: Any, names: list[str], converters: list[Convert | None]) -> dict[str, Any]:
    if isinstance(value, Row) and value.get_field_names():
        value = value.as_dict()
    if isinstance(value, Mapping):
        if unknown := [name for name in value if name not in names]:
            raise ValueError(f"it has the field {unknown[0]!r}; expected {names}")
        values: Sequence[Any] = [value.get(name) for name in names]
    else:
        values = list(value)
        if len(values) != len(names):
            raise ValueError(f"it has {len(values)} fields; expected {names}")
    return {name: _through(each, item) for name, each, item in zip(names, converters, values, strict=True)}


def columns_of(batch: Any, *, nested_rows: bool) -> list[list[Any]]:
    """The columns of a record batch as lists of Python's values. With `nested_rows` structs are Rows and maps dicts."""
    return [_to_list(column, nested_rows) for column in batch.columns]


def rows_of(batch: Any) -> list[Row]:
    """Each row of a record batch as a Row."""
    names = list(batch.schema.names)
    return [named_row(list(values), names) for values in zip(*columns_of(batch, nested_rows=True), strict=True)]


def dicts_of(batch: Any) -> list[dict[str, Any]]:
    """Each row of a record batch as a dict."""
    names = batch.schema.names
    if not names:
        return [{} for _ in range(batch.num_rows)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns_of(batch, nested_rows=False), strict=True)]


def _to_list(column: Any, nested_rows: bool) -> list[Any]:
    """`to_pylist`, by way of numpy where that gives the same objects: several times faster."""
    import pyarrow
    from pyarrow import types

    kind = column.type
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    if types.is_string(kind) or types.is_large_string(kind) or (number and column.null_count == 0):
        return list(column.to_numpy(zero_copy_only=False).tolist())
    if types.is_timestamp(kind) and kind.unit == "ns":  # Python's times end at microseconds
        column = column.cast(pyarrow.timestamp("us", kind.tz), safe=False)
    if not types.is_nested(kind):
        return list(column.to_pylist())
    if not nested_rows:
        return list(column.to_pylist())
    convert = _from_arrow(kind)
    values = column.to_pylist(maps_as_pydicts="strict")
    return list(values) if convert is None else [None if value is None else convert(value) for value in values]


def _from_arrow(arrow_type: Any) -> Convert | None:
    """What a nested value goes through after Arrow gave it; None: nothing."""
    from pyarrow import types

    if types.is_struct(arrow_type):
        names = [field.name for field in arrow_type]
        converters = [_from_arrow(field.type) for field in arrow_type]
        return lambda value: named_row(
            [_through(each, value[name]) for name, each in zip(names, converters, strict=True)], names
        )
    if types.is_map(arrow_type):
        item = _from_arrow(arrow_type.item_type)
        return None if item is None else lambda value: {key: _through(item, each) for key, each in value.items()}
    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        item = _from_arrow(arrow_type.value_type)
        return None if item is None else lambda values: [_through(item, each) for each in values]
    return None
