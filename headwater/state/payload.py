"""Bytes of a section: pickle with errors that name the owner, and the place inside the value.

A payload is the pickle (protocol 5) of `(FORMAT, layout, entries)`; the shape of `entries` belongs to the store that
wrote them. Entries are parallel lists, not pairs: that is a third faster to pickle and to read.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

import cloudpickle

from headwater.common.errors import SerializationError, StateError, short_repr

FORMAT = 1
PROTOCOL = 5


def encode(layout: tuple[Any, ...], entries: tuple[Any, ...], uid: str, name: str) -> bytes:
    """The payload of one section. `SerializationError` names what cannot be pickled."""
    content = (FORMAT, layout, entries)
    try:
        return pickle.dumps(content, PROTOCOL)
    except Exception:
        pass
    try:
        # Classes of the user's script (`__main__`) and of functions cannot be pickled by name in another process.
        return bytes(cloudpickle.dumps(content, PROTOCOL))
    except Exception as error:
        place, culprit, reason = _find_culprit(entries) or ("", entries, error)
        raise SerializationError(
            f"state '{name}' of operator '{uid}' holds a value that cannot be pickled: "
            f"{place or 'the value'} is a {type(culprit).__qualname__}, {short_repr(culprit, 120)} "
            f"({type(reason).__name__}: {reason}); keep plain data in state and make such objects in open()"
        ) from error


def decode(payload: bytes, uid: str, name: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """`(layout, entries)` as they were given to `encode`."""
    try:
        content = pickle.loads(payload)
    except Exception as error:
        raise SerializationError(
            f"state '{name}' of operator '{uid}' cannot be read ({type(error).__name__}: {error}); "
            f"the classes of its keys and values must be importable under the names they had when it was written"
        ) from error
    if not isinstance(content, tuple) or len(content) != 3 or content[0] != FORMAT:
        found = content[0] if isinstance(content, tuple) and content else type(content).__qualname__
        raise StateError(
            f"state '{name}' of operator '{uid}' has format {found!r}, expected {FORMAT}; "
            f"it was written by another version of headwater"
        )
    return content[1], content[2]


def _pickle_error(value: Any) -> Exception | None:
    try:
        cloudpickle.dumps(value, PROTOCOL)
    except Exception as error:
        return error
    return None


def _find_culprit(entries: Iterable[Any]) -> tuple[str, Any, Exception] | None:
    """The innermost part that cannot be pickled: (where in the value, the part, why)."""
    culprit: Any = None
    reason: Exception | None = None
    # The columns of `entries` and their rows are ours; the user's values are two levels down.
    for column in entries:
        rows = column if isinstance(column, list) else [column]
        culprit = next((row for row in rows if _pickle_error(row) is not None), None)
        if culprit is not None:
            reason = _pickle_error(culprit)
            break
    if reason is None:
        return None
    place = ""
    for _ in range(20):  # a value nested deeper than this is named by its outer part
        inner = next(((name, part) for name, part in _parts(culprit) if _pickle_error(part) is not None), None)
        if inner is None:
            break
        step, culprit = inner
        place += step
        reason = _pickle_error(culprit) or reason
    return place, culprit, reason


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield f"key {short_repr(key, 60)}", key
            yield f"[{short_repr(key, 60)}]", part
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            yield f"[{index}]", part
    elif isinstance(value, (set, frozenset)):
        for part in value:
            yield " element", part
    else:
        owner = type(value).__qualname__
        for name, part in getattr(value, "__dict__", {}).items():
            yield f" attribute '{name}' of {owner}", part
