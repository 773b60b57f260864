"""What a dataclass or NamedTuple looked like when its instances were stored.

Pickle stores a class by its name, and its fields by name or by position, depending on the class. A schema beside the
pickle says which fields these were, so that a later version of the class can get each value by the field's name.
"""

from __future__ import annotations

import copyreg
import dataclasses
import importlib
import inspect
import operator
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from headwater.state.evolution.annotations import annotation_text

DATACLASS: Final = "dataclass"
SLOTS: Final = "dataclass with slots"
FROZEN_SLOTS: Final = "frozen dataclass with slots"
"""Stored as a list of values, by position."""
NAMED_TUPLE: Final = "NamedTuple"
"""Stored by position."""


class ClassSchema(NamedTuple):
    """One version of a class. Objects of two classes with equal schemas are pickled in the same way."""

    module: str
    qualname: str
    kind: str
    fields: tuple[tuple[str, str], ...]
    """(name, annotation), in the order of the class"""

    @property
    def name(self) -> str:
        """The class's name for people."""
        return self.qualname if self.module == "__main__" else f"{self.module}.{self.qualname}"


_schemas: WeakKeyDictionary[type, ClassSchema | None] = WeakKeyDictionary()
_decoder = msgspec.msgpack.Decoder(tuple[ClassSchema, ...])


def schema_of(cls: type) -> ClassSchema | None:
    """Return today's schema of a class; None if it is neither dataclass nor NamedTuple, or pickles in its own way."""
    try:
        return _schemas[cls]
    except KeyError:
        schema = _schemas[cls] = _make_schema(cls)
        return schema


def find_class(module: str, qualname: str) -> type | None:
    """Return the class of that name in today's program; None if there is none."""
    try:
        found: Any = importlib.import_module(module)
        for part in qualname.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return found if isinstance(found, type) else None


class NotLoadedError(Exception):
    """A class may be there, but its module is not loaded, and is not to be."""


def loaded_class(module: str, qualname: str) -> type | None:
    """As `find_class`, without running anybody's code: `NotLoadedError` if the module would have to be imported."""
    if module not in sys.modules:
        raise NotLoadedError(module)
    found: Any = sys.modules[module]
    for part in qualname.split("."):
        found = vars(found).get(part) if isinstance(found, (type, ModuleType)) else None
    return found if isinstance(found, type) else None


def encode_schemas(classes: Iterable[type]) -> bytes:
    """Encode the schemas of those `classes` that have one; b"" if none has."""
    found = [schema for cls in classes if (schema := _stored_schema(cls)) is not None]
    return msgspec.msgpack.encode(found) if found else b""


def decode_schemas(data: bytes) -> tuple[ClassSchema, ...]:
    """Return the schemas that `encode_schemas` encoded."""
    return _decoder.decode(data)


class ClassNotes(dict[type, Any]):
    """A pickler's dispatch table that notes the classes of the objects that are pickled.

    Pickle looks up the class of every object that is not a plain builtin. The first look-up of a class notes it and
    returns the reducer that pickle would have used anyway. Every later look-up costs one dict access, in C.
    """

    __slots__ = ()

    def __missing__(self, cls: type) -> Any:
        if issubclass(cls, type):  # pickle must store classes by name, without a reducer
            raise KeyError(cls)
        reduce = self[cls] = copyreg.dispatch_table.get(cls, _REDUCE)
        return reduce


_REDUCE: Final = operator.methodcaller("__reduce_ex__", 5)


def _stored_schema(cls: type) -> ClassSchema | None:
    schema = schema_of(cls)
    # A class defined in a function is pickled by value, not by name: it cannot change later.
    return None if schema is None or "<locals>" in schema.qualname else schema


def _make_schema(cls: type) -> ClassSchema | None:
    stored = cls.__dict__.get("__stored_schema__")
    if stored is not None:
        assert isinstance(stored, ClassSchema)
        return stored
    kind = _kind_of(cls)
    if kind is None:
        return None
    if kind == NAMED_TUPLE:
        annotations = {
            name: text for base in reversed(cls.__mro__) for name, text in inspect.get_annotations(base).items()
        }
        fields = tuple((name, annotation_text(annotations.get(name, ""))) for name in cls._fields)  # type: ignore[attr-defined]
    else:
        fields = tuple((field.name, annotation_text(field.type)) for field in dataclasses.fields(cls))
    return ClassSchema(cls.__module__, cls.__qualname__, kind, fields)


def _kind_of(cls: Any) -> str | None:
    if cls.__reduce_ex__ is not object.__reduce_ex__ or cls.__reduce__ is not object.__reduce__:
        return None
    if issubclass(cls, tuple):
        return NAMED_TUPLE if hasattr(cls, "_fields") and hasattr(cls, "_make") else None
    if not dataclasses.is_dataclass(cls) or hasattr(cls, "__getnewargs__") or hasattr(cls, "__getnewargs_ex__"):
        return None
    get_state, set_state = getattr(cls, "__getstate__", None), getattr(cls, "__setstate__", None)
    if get_state is not None and get_state is getattr(dataclasses, "_dataclass_getstate", None):
        return FROZEN_SLOTS
    if set_state is not None or get_state is not getattr(object, "__getstate__", None):
        return None
    has_dict = bool(getattr(cls, "__dictoffset__", 0))
    return DATACLASS if has_dict else SLOTS
