"""Reads rows for state, from Python or from a DataFrame, without importing Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.common.errors import StateError
from headwater.common.types import Row


def keyed_rows(rows: Any) -> Iterator[tuple[Any, Any, Any]]:
    """(key, namespace, value) of each row."""
    if _is_frame(rows):
        for key, namespace, value in _of_frame(rows, ("key", "value"), ("namespace",), ("key", "namespace", "value")):
            yield _as_key(key), _as_key(namespace), _as_value(value)
        return
    for row in rows:
        if not isinstance(row, tuple) or len(row) not in (2, 3):
            raise StateError(f"a row is {row!r}; expected (key, value) or (key, namespace, value)")
        yield (row[0], None, row[1]) if len(row) == 2 else row


def timer_rows(rows: Any, domain: str) -> Iterator[tuple[int, Any, Any]]:
    """Yield (timestamp in ms, key, namespace) of each row. If a DataFrame has both time domains, only of `domain`."""
    if _is_frame(rows):
        columns = ("time_domain", "timestamp_ms", "key", "namespace")
        for found, timestamp_ms, key, namespace in _of_frame(
            rows, ("timestamp_ms", "key"), ("time_domain", "namespace"), columns
        ):
            if found in (None, domain):
                yield timestamp_ms, _as_key(key), _as_key(namespace)
        return
    for row in rows:
        if not isinstance(row, tuple) or len(row) not in (2, 3):
            raise StateError(f"a timer is {row!r}; expected (timestamp_ms, key) or (timestamp_ms, key, namespace)")
        yield (row[0], row[1], None) if len(row) == 2 else row


def elements(rows: Any) -> Iterator[Any]:
    """Elements of a list state."""
    if not _is_frame(rows):
        yield from rows
        return
    for (value,) in _of_frame(rows, ("value",), ("partition",), ("value",)):
        yield _as_value(value)


def entries(rows: Any) -> dict[Any, Any]:
    """{key: value} of a broadcast state."""
    if not _is_frame(rows):
        return dict(rows)
    return {_as_key(key): _as_value(value) for key, value in _of_frame(rows, ("key", "value"), (), ("key", "value"))}


def window_rows(rows: Any) -> Iterator[tuple[Any, int | None, int | None, Any]]:
    """(key, start in ms, end in ms, contents) of each row; the end may be left out."""
    if _is_frame(rows):
        columns = ("key", "start_ms", "end_ms", "contents")
        for key, start_ms, end_ms, contents in _of_frame(rows, ("key", "contents"), ("start_ms", "end_ms"), columns):
            yield _as_key(key), start_ms, end_ms, _as_value(contents)
        return
    for row in rows:
        if not isinstance(row, tuple) or len(row) != 4:
            raise StateError(f"a window is {row!r}; expected (key, start_ms, end_ms, contents)")
        yield row


def _is_frame(rows: Any) -> bool:
    return hasattr(rows, "toLocalIterator") and hasattr(rows, "columns")


def _of_frame(
    frame: Any, needed: tuple[str, ...], allowed: tuple[str, ...], wanted: tuple[str, ...]
) -> Iterator[tuple[Any, ...]]:
    """Yield the columns `wanted` of each row; None for a column that the frame does not have."""
    columns = list(frame.columns)
    if not set(needed) <= set(columns) <= {*needed, *allowed}:
        maybe = f" and maybe {', '.join(allowed)}" if allowed else ""
        raise StateError(
            f"the DataFrame has the columns {', '.join(columns)}; expected {', '.join(needed)}{maybe}: choose and "
            "rename them with select()"
        )
    for row in frame.toLocalIterator():
        yield tuple(row[name] if name in columns else None for name in wanted)


def _as_key(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_as_key(each) for each in value)
    return value


def _as_value(value: Any) -> Any:
    """Return `value` without Spark's classes: slots may not have Spark."""
    if isinstance(value, tuple):
        names = getattr(value, "__fields__", None)
        plain = [_as_value(each) for each in value]
        if names is None or list(names) == [f"_{number}" for number in range(1, len(plain) + 1)]:
            return tuple(plain)  # that is what Spark calls the fields of a tuple
        return Row(**dict(zip(names, plain, strict=True)))
    if isinstance(value, list):
        return [_as_value(each) for each in value]
    if isinstance(value, dict):
        return {_as_key(key): _as_value(each) for key, each in value.items()}
    return value
