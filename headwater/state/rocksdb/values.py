"""Values as bytes in RocksDB: plain pickles, and beside them, once per state, what their classes looked like.

An entry is as small as a pickle can be, so it does not say what a class was when it was stored. That is kept with the
database for all values of a state together. Whoever opens the database later compares; if a class has changed, the
entries are not used as they are.
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
"""If a pickle does not contain this, there is no class in it. The other way round it is not certain."""

_PLAIN: Final = ""
"""Kind of a class of which only the name matters: it must still be there."""


class ValuePickler:
    """Pickles what one state stores, and notes the classes among it."""

    def __init__(self, uid: str, name: str) -> None:
        self._uid = uid
        self._name = name
        self._notes = ClassNotes()
        self._earlier: tuple[ClassSchema, ...] = ()
        self._stream, self._pickler = self._new_pickler()

    def dumps(self, content: Any) -> bytes:
        """One pickle. Called for each entry that is written, so the pickler is not made anew."""
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
        """Whether anything but plain builtins was ever among what was pickled."""
        return bool(self._notes)

    def _new_pickler(self) -> tuple[io.BytesIO, pickle.Pickler]:
        stream = io.BytesIO()
        pickler = pickle.Pickler(stream, codec.PROTOCOL)
        pickler.dispatch_table = self._notes
        return stream, pickler

    @property
    def has_stored_records(self) -> bool:
        """Whether values of another form wait for the program to ask for them."""
        return any(issubclass(cls, StoredRecord) for cls in self._notes)

    def classes(self) -> list[tuple[Any, ...]]:
        """The schemas of all classes that were stored by name, as plain values."""
        found = dict.fromkeys(self._earlier)
        for cls in self._notes:
            if issubclass(cls, StoredRecord):  # says itself what it was
                continue
            schema = schema_of(cls)
            if schema is None and find_class(cls.__module__, cls.__qualname__) is cls:
                schema = ClassSchema(cls.__module__, cls.__qualname__, _PLAIN, ())
            # A class within a function is stored with its values, not by name: nothing that could change.
            if schema is not None and "<locals>" not in schema.qualname:
                found[schema] = None
        return sorted(map(tuple, found))

    def start_over(self) -> None:
        """Whatever is in the database is about to be pickled anew."""
        self._notes = ClassNotes()
        self._earlier = ()
        self._stream, self._pickler = self._new_pickler()

    def loaded(self, classes: Iterable[tuple[Any, ...]]) -> None:
        """The database has values of these classes, none of which has changed."""
        self._earlier = tuple(ClassSchema(*each) for each in classes)


def changes_of(classes: Iterable[tuple[Any, ...]]) -> tuple[ClassChange, ...]:
    """Those of `classes`, as `ValuePickler.classes` gave them, that have changed."""
    schemas = dict.fromkeys(ClassSchema(*each) for each in classes)
    changes = ((schema, class_change(schema)) for schema in schemas)
    return tuple(
        change
        for schema, change in changes
        if change is not None and (schema.kind != _PLAIN or find_class(schema.module, schema.qualname) is None)
    )


class ValueReader(Protocol):
    """How a database's values are read."""

    def loads(self, data: bytes) -> Any:
        """The value in `data`, whatever follows it."""
        ...

    def key_behind(self, data: bytes) -> Any:
        """The key that follows the value in `data`."""
        ...


class PlainValues:
    """As they are."""

    loads = staticmethod(pickle.loads)

    @staticmethod
    def key_behind(data: bytes) -> Any:
        stream = io.BytesIO(data)
        pickle.load(stream)
        return pickle.load(stream)


class StoredValues:
    """As they were: objects of classes that have changed become `StoredRecord`s."""

    def __init__(self, changes: Iterable[ClassChange]) -> None:
        self._changes = {(change.stored.module, change.stored.qualname): change for change in changes}

    def loads(self, data: bytes) -> Any:
        return load_as_stored(io.BytesIO(data), self._changes)

    def key_behind(self, data: bytes) -> Any:
        stream = io.BytesIO(data)
        load_as_stored(stream, self._changes)
        return load_as_stored(stream, self._changes)
