"""Rows of Python, as DataStream's connectors and formats have them, to changes and back."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.common.types import Row, RowKind
from headwater.table.batch.rows import to_python
from headwater.table.functions.casting.from_text import fit_decimal
from headwater.table.stream.changes import Changes, Typed, no_columns, schema_of
from headwater.table.stream.operators.sink import Encoder
from headwater.table.stream.operators.to_changes import Converter
from headwater.table.types import logical as t
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType

KINDS = (RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE)
_TAKES_BACK = (RowKind.UPDATE_BEFORE, RowKind.DELETE)


def weights_of(kinds: Sequence[RowKind]) -> np.ndarray[Any, Any] | None:
    """+1 for a row that comes, -1 for one that goes. None if all come."""
    if all(kind not in _TAKES_BACK for kind in kinds):
        return None
    return np.array([-1 if kind in _TAKES_BACK else 1 for kind in kinds], np.int64)


def changes_of(records: Sequence[Row], columns: Sequence[pa.Array], fields: Sequence[Typed]) -> Changes:
    """The changes that these Rows tell; `columns` are their values."""
    weights = weights_of([record.get_row_kind() for record in records])
    if not fields:
        return Changes(no_columns(len(records)), weights)
    return Changes(pa.RecordBatch.from_arrays(columns, schema=schema_of(fields)), weights)


@dataclass(frozen=True)
class RowsConverter(Converter):
    """Records that are Rows, tuples or dicts. `places`: where each wanted column is in a record; None: its whole."""

    names: tuple[str, ...]
    types: tuple[LogicalType, ...]
    places: tuple[int | None, ...]
    table: str
    by_name: bool = False
    """Records are dicts: values are found by the columns' names."""

    def convert(self, records: list[Any], timestamps: list[int | None] | None, now_ms: int) -> Changes:
        arrays = [
            self.column(name, type_, self._values(records, name, place))
            for name, type_, place in zip(self.names, self.types, self.places, strict=True)
        ]
        schema = pa.schema([pa.field(str(at), to_arrow(type_)) for at, type_ in enumerate(self.types)])
        rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
        kinds = [record.get_row_kind() for record in records if isinstance(record, Row)]
        return Changes(rows, weights_of(kinds) if len(kinds) == len(records) else None)

    def _values(self, records: list[Any], name: str, place: int | None) -> list[Any]:
        if place is None:
            return list(records)
        if self.by_name:
            return [record.get(name) for record in records]
        return [record[place] for record in records]

    def column(self, name: str, type_: LogicalType, values: list[Any]) -> pa.Array:
        return column_of(values, type_, f"table '{self.table}': column '{name}'")


def column_of(values: list[Any], type_: LogicalType, what: str) -> pa.Array:
    """Python values as a column. One that does not fit is a SqlError."""
    try:
        return pa.array([arrow_value(value, type_) for value in values], to_arrow(type_))
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError) as error:
        raise SqlError(f"{what} is {type_.sql()}, and a value does not fit: {error}") from None


def arrow_value(value: Any, type_: LogicalType) -> Any:
    """A value as Arrow takes it: rows are dictionaries, maps are lists of pairs."""
    if value is None:
        return None
    match type_:
        case t.RowType():
            if isinstance(value, dict):
                return {each.name: arrow_value(value.get(each.name), each.type) for each in type_.fields}
            return {each.name: arrow_value(item, each.type) for each, item in zip(type_.fields, value, strict=True)}
        case t.ArrayType():
            return [arrow_value(each, type_.element) for each in value]
        case t.MapType():
            return [(arrow_value(k, type_.key), arrow_value(v, type_.value)) for k, v in value.items()]
        case t.MultisetType():
            return [(arrow_value(k, type_.element), v) for k, v in value.items()]
        case t.DecimalType() if isinstance(value, int):
            return pa.scalar(value, pa.int64()).cast(to_arrow(type_)).as_py()
        case t.DecimalType():
            found = fit_decimal(value, type_.precision, type_.scale)
            if found is None:
                raise ValueError(f"{value} has too many digits")
            return found
        case t.TimestampType() if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            return value.astimezone(datetime.UTC).replace(tzinfo=None)
        case t.LocalZonedTimestampType() if hasattr(value, "to_epoch_milli"):
            return datetime.datetime.fromtimestamp(value.to_epoch_milli() / 1000, datetime.UTC)
        case t.LocalZonedTimestampType() if isinstance(value, int):
            return datetime.datetime.fromtimestamp(value / 1000, datetime.UTC)
        case t.VarBinaryType() | t.BinaryType() if isinstance(value, bytearray | list):
            return bytes(value)
    return value


@dataclass(frozen=True)
class RowsEncoder(Encoder):
    """Rows with names and kinds. `types` are the columns'."""

    names: tuple[str, ...]
    types: tuple[LogicalType, ...]

    def encode(self, rows: pa.RecordBatch, kinds: Sequence[RowKind]) -> list[Any]:
        names = list(self.names)
        columns = [
            [to_python(value, type_) for value in column.to_pylist()]
            for column, type_ in zip(rows.columns, self.types, strict=True)
        ]
        found = []
        values = zip(*columns, strict=True) if columns else ([] for _ in range(rows.num_rows))
        for kind, items in zip(kinds, values, strict=True):
            row = Row.of_kind(kind, *items)
            row.set_field_names(names)
            found.append(row)
        return found
