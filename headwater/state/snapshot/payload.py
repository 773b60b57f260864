"""The bytes of a section: a pickle. Errors name the state, and the place inside the value that cannot be pickled.

A payload is the pickle (protocol 5) of `(FORMAT, layout, columns)`: a `StateLayout` as a plain tuple, and the columns
of the state's `Entries`, in the forms of `packed.py`. A column of tuples of one width, the most frequent keys and
values, is itself stored as columns: that is a third faster to pickle and to read. Format 2 had no arrays.

If dataclasses or NamedTuples are among the values, their schemas follow the pickle: ::

    pickle | schemas (msgpack) | u32 length of the schemas | magic "HWS1"

A pickle marks its own end, with a full stop. So a reader can tell payloads with and without schemas apart, and a reader
that knows nothing of schemas can read both.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import cloudpickle

from headwater.common.errors import SerializationError, StateError, StateMigrationError, short_repr
from headwater.state.evolution import changed_classes as evolution
from headwater.state.evolution.changed_classes import ClassChange, class_change
from headwater.state.evolution.schema import ClassNotes, ClassSchema, decode_schemas, encode_schemas, find_class
from headwater.state.restricted import StandIns
from headwater.state.snapshot.entries import Entries, entries_of
from headwater.state.snapshot.layout import StateLayout
from headwater.state.snapshot.packed import packed, transposed, unpacked

FORMAT = 3
_READ: Final = (2, FORMAT)
PROTOCOL = 5

_FOOT: Final = struct.Struct("<I4s")
_MAGIC: Final = b"HWS1"


class Decoded(NamedTuple):
    """The content of a payload."""

    layout: StateLayout
    entries: Entries
    changes: tuple[ClassChange, ...] = ()
    """Classes in the entries that have changed. Objects of those with obstacles were read as `StoredRecord`s."""


def encode(layout: StateLayout, entries: Entries, uid: str, name: str, unshared: bool = False) -> bytes:
    """Return the payload of one section. Raises `SerializationError` that names what cannot be pickled.

    `unshared`: nothing that can change, and nothing large, is stored in more than one place. Then nobody remembers what
    has been written already, which is most of the work for rows of strings and numbers.
    """
    columns = entries.columns()
    content = (FORMAT, tuple(layout), _packed_columns(columns, layout.key_width))
    notes = ClassNotes()
    stream = io.BytesIO()
    try:
        pickler = pickle.Pickler(stream, PROTOCOL)
        pickler.dispatch_table = notes
        # Objects of classes would each be written with the name of their class.
        pickler.fast = unshared and pickle.STACK_GLOBAL not in pickle.dumps([each[:1] for each in columns], PROTOCOL)
        pickler.dump(content)
    except Exception:
        notes, stream = ClassNotes(), io.BytesIO()
        _dump_by_value(content, columns, stream, notes, uid, name)
    schemas = encode_schemas(notes) if notes else b""
    if schemas:
        stream.write(schemas)
        stream.write(_FOOT.pack(len(schemas), _MAGIC))
    return stream.getvalue()


def dumps_by_value(value: Any, notes: ClassNotes, uid: str, name: str) -> bytes:
    """Pickle one value that plain pickle cannot store. Raises `SerializationError` if this fails too."""
    stream = io.BytesIO()
    _dump_by_value(value, ([value],), stream, notes, uid, name)
    return stream.getvalue()


def decode_keys(payload: bytes, uid: str, name: str) -> Decoded:
    """Like `decode`, for entries that are all keys (timers). Raises `StateMigrationError` if a class has changed."""
    decoded = decode(payload, uid, name)
    for change in (change for change in decoded.changes if change.shows):
        raise StateMigrationError(
            f"{name} of operator '{uid}' cannot be restored: they belong to keys that are objects of "
            f"{change.stored.name}, which has changed since they were stored ({describe(change)}). A key must stay as "
            "it is: change the class back, or make the key of plain values (a tuple, a string)"
        )
    return decoded


def decode(payload: bytes, uid: str, name: str) -> Decoded:
    """Return what `encode` got. Objects of changed classes become objects of today's classes where that is possible."""
    try:
        changes = tuple(change for schema in stored_schemas(payload) if (change := class_change(schema)) is not None)
        content, changes = _load(payload, changes)
    except Exception as error:
        raise SerializationError(
            f"state '{name}' of operator '{uid}' cannot be read ({type(error).__name__}: {error}); "
            f"the classes of its keys and values must be importable under the names they had when it was written"
        ) from error
    return _decoded(content, changes, uid, name)


def decode_restricted(payload: bytes, stand_ins: StandIns, uid: str, name: str) -> Decoded:
    """As `decode`, without loading a class: for payloads that somebody else may have written."""
    try:
        stand_ins.learn(stored_schemas(payload))
        content = stand_ins.loads(payload)
    except Exception as error:
        raise SerializationError(
            f"state '{name}' of operator '{uid}' cannot be read without the classes that it names "
            f"({type(error).__name__}: {error})"
        ) from error
    return _decoded(content, (), uid, name)


def _decoded(content: Any, changes: tuple[ClassChange, ...], uid: str, name: str) -> Decoded:
    if not isinstance(content, tuple) or len(content) != 3 or content[0] not in _READ:
        found = content[0] if isinstance(content, tuple) and content else type(content).__qualname__
        raise StateError(
            f"state '{name}' of operator '{uid}' has format {found!r}, expected {FORMAT}; it was written by another "
            "version of headwater: run the job with that one, or start it without this state"
        )
    try:
        layout = StateLayout.stored(content[1])
        return Decoded(layout, entries_of(layout.kind, tuple(map(unpacked, content[2]))), changes)
    except (TypeError, ValueError) as error:
        raise StateError(f"state '{name}' of operator '{uid}' cannot be read: {error}") from error


def _packed_columns(columns: tuple[list[Any], ...], key_width: int) -> tuple[Any, ...]:
    """Pack the columns of entries. The first and the last one have keys; headwater's own tuples need no inspection."""
    if key_width == 1:
        return tuple(map(packed, columns))
    keys, *content, deleted = columns
    return (transposed(keys, key_width), *map(packed, content), transposed(deleted, key_width))


def _load(payload: bytes, changes: tuple[ClassChange, ...]) -> tuple[Any, tuple[ClassChange, ...]]:
    if not changes:
        try:
            return pickle.loads(payload), ()
        except (ImportError, AttributeError):  # a class that has no schema no longer exists
            pass
    return evolution.loads(payload, changes)


def stored_schemas(payload: bytes) -> tuple[ClassSchema, ...]:
    """Return the schemas of the classes in the entries, as of when the payload was written. Unpickles nothing."""
    if not payload.endswith(_MAGIC):
        return ()
    length, _ = _FOOT.unpack_from(payload, len(payload) - _FOOT.size)
    end = len(payload) - _FOOT.size
    return decode_schemas(payload[end - length : end])


def describe(change: ClassChange) -> str:
    """Describe a change of a class in a few words."""
    return ", ".join((*change.obstacles, *change.differences)).rstrip(".")


class _ByValuePickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Stores a class by name if an import finds it. Otherwise it stores the class itself, with the values."""

    def __init__(self, stream: io.BytesIO, notes: ClassNotes) -> None:
        super().__init__(stream, PROTOCOL)
        self._notes = notes

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type):
            found = find_class(obj.__module__, obj.__qualname__)
            return NotImplemented if found is obj else super().reducer_override(obj)
        self._notes.get(type(obj)) or self._notes.__missing__(type(obj))
        return super().reducer_override(obj)


def _dump_by_value(
    content: Any, entries: tuple[Any, ...], stream: io.BytesIO, notes: ClassNotes, uid: str, name: str
) -> None:
    try:
        _ByValuePickler(stream, notes).dump(content)
    except Exception as error:
        place, culprit, reason = _find_culprit(entries) or ("", entries, error)
        raise SerializationError(
            f"state '{name}' of operator '{uid}' holds a value that cannot be pickled: "
            f"{place or 'the value'} is a {type(culprit).__qualname__}, {short_repr(culprit, 120)} "
            f"({type(reason).__name__}: {reason}); keep plain data in state and make such objects in open()"
        ) from error


def _pickle_error(value: Any) -> Exception | None:
    try:
        cloudpickle.dumps(value, PROTOCOL)
    except Exception as error:
        return error
    return None


def _find_culprit(entries: Iterable[Any]) -> tuple[str, Any, Exception] | None:
    """Find the innermost part that cannot be pickled: (where in the value, the part, the error)."""
    culprit: Any = None
    reason: Exception | None = None
    # The columns of `entries` and their rows are headwater's; the user's values are two levels down.
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
