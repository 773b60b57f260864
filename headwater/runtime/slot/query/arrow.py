"""Entries of a state as an Arrow batch: one row per entry, one row per map entry of a map state.

Columns: `key`; `namespace` for the state of windows; `map_key` for maps; `value`. What has no common Arrow type is JSON
text: keys of several kinds, say. Such a column is marked, because other batches of the same state may be typed: whoever
joins batches asks for that column as JSON from all of them (`headwater/queryable_state/sql.py`).
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import pyarrow as pa

Json = dict[str, Any]

JSON_COLUMN = {b"headwater": b"json"}
"""The metadata of a column that is JSON text."""


def rows_of(key: Any, namespace: Any, value: Any, *, namespaced: bool, is_map: bool) -> list[Json]:
    """Return the rows of one entry, all in the form of JSON."""
    row: Json = {"key": key}
    if namespaced:
        row["namespace"] = namespace
    if not is_map:
        return [row | {"value": value}]
    pairs = value["$map"] if set(value) == {"$map"} else value.items()
    return [row | {"map_key": map_key, "value": each} for map_key, each in pairs]


def to_arrow(rows: list[Json], columns: list[str], as_json: Collection[str] = ()) -> bytes:
    """Return an IPC stream with one batch. Columns in `as_json` are JSON text, whatever is in them."""
    arrays, fields = [], []
    for name in columns:
        values = [row[name] for row in rows]
        typed = None if name in as_json else _typed(values)
        arrays.append(_json_texts(values) if typed is None else typed)
        fields.append(pa.field(name, arrays[-1].type, metadata=JSON_COLUMN if typed is None else None))
    table = pa.table(arrays, schema=pa.schema(fields))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _typed(values: list[Any]) -> Any:
    """Return None if the values have no type in common."""
    try:
        return pa.array([_plain(value) for value in values])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return None


def _json_texts(values: list[Any]) -> Any:
    return pa.array([None if value is None else json.dumps(value, sort_keys=True) for value in values], pa.string())


def _plain(value: Any) -> Any:
    """Return what `$` forms mean to SQL: a window is its start and end, the others are their content."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, content),) = value.items()
        if name == "$window":
            return {"start": content[0], "end": content[1]}
        if name == "$map":
            return [{"key": _plain(key), "value": _plain(each)} for key, each in content]
        if name.startswith("$"):
            return _plain(content)
    return {key: _plain(each) for key, each in value.items()}
