"""Values as bytes in RocksDB: plain pickles, and once per state the schemas of their classes.

An entry is a bare pickle, so it does not describe its classes. The database has their schemas once, for all values of a
state together. Whoever opens the database later compares them; if a class has changed, the entries must be converted.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable
from typing import Any, Final, Protocol

from headwater.state.evolution.changed_classes import ClassChange, StoredRecord, class_change, load_as_stored
from headwater.state.evolution.schema import ClassNotes, ClassSchema, find_class, schema_of
from headwater.state.snapshot import payload as codec

OF_A_CLASS: Final = b"\x93"
"""A pickle without this byte contains no class. A pickle with it may or may not."""

_PLAIN: Final = ""
"""Kind of a class without a schema: it only has to exist under its name."""


class ValuePickler:
    """Pickles the values of one state, and notes their classes."""

    def __init__(self, uid: str, name: str) -> None:
        self._uid = uid
        self._name = name
        self._notes = ClassNotes()
        self._earlier: tuple[ClassSchema, ...] = ()
        self._stream, self._pickler = self._new_pickler()

    def dumps(self, content: Any) -> bytes:
        """Pickle one value. Called for each written entry, so it reuses one pickler."""
        stream = self._stream
        try:
            self._pickler.dump(content)
        except Exception:
            self._stream, self._pickler = self._new_pickler()
            return codec.dumps_by_value(content, self._notes, self._uid, self._name)
        data = stream.getvalue()
        stream.seek(0)
        stream.truncate()
        self._pickler.clear_memo()
        return data

    @property
    def meets_classes(self) -> bool:
        """True if anything but plain builtins was ever pickled."""
        return bool(self._notes)

    def _new_pickler(self) -> tuple[io.BytesIO, pickle.Pickler]:
        stream = io.BytesIO()
        pickler = pickle.Pickler(stream, codec.PROTOCOL)
        pickler.dispatch_table = self._notes
        return stream, pickler

    @property
    def has_stored_records(self) -> bool:
        """True if there are `StoredRecord`s, which are converted when the program asks for the state."""
        return any(issubclass(cls, StoredRecord) for cls in self._notes)

    def classes(self) -> list[tuple[Any, ...]]:
        """Return the schemas of all classes that were pickled by name, as plain values."""
        found = dict.fromkeys(self._earlier)
        for cls in self._notes:
            if issubclass(cls, StoredRecord):  # a record carries its own schema
                continue
            schema = schema_of(cls)
            if schema is None and find_class(cls.__module__, cls.__qualname__) is cls:
                schema = ClassSchema(cls.__module__, cls.__qualname__, _PLAIN, ())
            # A class defined in a function is pickled by value, not by name: it cannot change later.
            if schema is not None and "<locals>" not in schema.qualname:
                found[schema] = None
        return sorted(map(tuple, found))

    def start_over(self) -> None:
        """Forget all classes. Called when the whole state is about to be pickled anew."""
        self._notes = ClassNotes()
        self._earlier = ()
        self._stream, self._pickler = self._new_pickler()

    def loaded(self, classes: Iterable[tuple[Any, ...]]) -> None:
        """The opened database has values of these classes. None of them has changed."""
        self._earlier = tuple(ClassSchema(*each) for each in classes)


def changes_of(classes: Iterable[tuple[Any, ...]]) -> tuple[ClassChange, ...]:
    """Return the changes of those `classes` that have changed. `classes` come from `ValuePickler.classes`."""
    schemas = dict.fromkeys(ClassSchema(*each) for each in classes)
    changes = ((schema, class_change(schema)) for schema in schemas)
    return tuple(
        change
        for schema, change in changes
        if change is not None and (schema.kind != _PLAIN or find_class(schema.module, schema.qualname) is None)
    )


class ValueReader(Protocol):
    """Unpickles the values of a database."""

    def loads(self, data: bytes) -> Any:
        """Return the value at the start of `data`, and ignore what follows."""
        ...

    def key_behind(self, data: bytes) -> Any:
        """Return the key that follows the value in `data`."""
        ...


class PlainValues:
    """Reads values with plain pickle."""

    loads = staticmethod(pickle.loads)

    @staticmethod
    def key_behind(data: bytes) -> Any:
        stream = io.BytesIO(data)
        pickle.load(stream)
        return pickle.load(stream)


class StoredValues:
    """Reads objects of changed classes as `StoredRecord`s."""

    def __init__(self, changes: Iterable[ClassChange]) -> None:
        self._changes = {(change.stored.module, change.stored.qualname): change for change in changes}

    def loads(self, data: bytes) -> Any:
        return load_as_stored(io.BytesIO(data), self._changes)

    def key_behind(self, data: bytes) -> Any:
        stream = io.BytesIO(data)
        load_as_stored(stream, self._changes)
        return load_as_stored(stream, self._changes)
