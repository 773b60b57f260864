"""Rows for state, from Python or from a DataFrame, without importing Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.common.errors import StateError
from headwater.common.types import Row


def keyed_rows(rows: Any) -> Iterator[tuple[Any, Any, Any]]:
    """(key, namespace, value) of each row."""
    if hasattr(rows, "toLocalIterator") and hasattr(rows, "columns"):
        yield from _of_frame(rows)
        return
    for row in rows:
        if not isinstance(row, tuple) or len(row) not in (2, 3):
            raise StateError(f"a row is {row!r}; expected (key, value) or (key, namespace, value)")
        yield (row[0], None, row[1]) if len(row) == 2 else row


def _of_frame(frame: Any) -> Iterator[tuple[Any, Any, Any]]:
    columns = list(frame.columns)
    if not {"key", "value"} <= set(columns) <= {"key", "namespace", "value"}:
        raise StateError(
            f"the DataFrame has the columns {', '.join(columns)}; expected key, value and maybe namespace: choose and "
            "rename them with select()"
        )
    for row in frame.toLocalIterator():
        namespace = _as_key(row["namespace"]) if "namespace" in columns else None
        yield _as_key(row["key"]), namespace, _as_value(row["value"])


def _as_key(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_as_key(each) for each in value)
    return value


def _as_value(value: Any) -> Any:
    """Without classes of Spark, which slots need not have."""
    if isinstance(value, tuple):
        names = getattr(value, "__fields__", None)
        plain = [_as_value(each) for each in value]
        return tuple(plain) if names is None else Row(**dict(zip(names, plain, strict=True)))
    if isinstance(value, list):
        return [_as_value(each) for each in value]
    if isinstance(value, dict):
        return {_as_key(key): _as_value(each) for key, each in value.items()}
    return value
