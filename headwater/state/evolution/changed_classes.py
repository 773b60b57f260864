"""Reads objects of classes that have changed since they were stored.

Values go to today's fields by name: fields may be reordered, removed, added with a default, and widened from int to
float. If that is not enough (an annotation changed otherwise, a new field has no default, the class is gone), the
object is read as a `StoredRecord`. Whether a migration function exists for it is known only later, when the program
asks for the state.
"""

from __future__ import annotations

import dataclasses
import inspect
import io
import pickle
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from headwater.common.errors import short_repr
from headwater.state.evolution.annotations import Convert, annotation_change
from headwater.state.evolution.schema import NAMED_TUPLE, ClassSchema, find_class, schema_of


class ClassChange(NamedTuple):
    """How today's class differs from the stored one."""

    stored: ClassSchema
    differences: tuple[str, ...]
    """Changes that are handled automatically, in words: "'currency' is new"."""
    obstacles: tuple[str, ...]
    """Changes that need a migration function, in whole sentences. Empty: objects become objects of today's class."""

    @property
    def shows(self) -> bool:
        """True if the objects themselves differ. False if only their storage does: the class got slots, say, or lost
        them because cloudpickle brought it to this process."""
        return bool(self.differences or self.obstacles)


class StoredRecord:
    """A stored object whose class is gone, or has changed so that no safe conversion exists.

    Migration functions get it. Each stored field is an attribute.
    """

    __stored_schema__: ClassVar[ClassSchema]

    def __new__(cls, *values: Any, **named: Any) -> StoredRecord:
        record = object.__new__(cls)
        names = [name for name, _ in cls.__stored_schema__.fields]
        if values:
            vars(record).update(zip(names, values, strict=False) if names else {"arguments": values})
        vars(record).update(named)
        return record

    def __setstate__(self, state: Any) -> None:
        vars(self).update(_by_name(state, self.__stored_schema__))

    def as_dict(self) -> dict[str, Any]:
        """{field: value}"""
        return dict(vars(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_revive, (tuple(self.__stored_schema__), vars(self).copy()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StoredRecord):
            return NotImplemented
        return self.__stored_schema__ == other.__stored_schema__ and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.__stored_schema__.name, tuple(vars(self).values())))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={short_repr(value, 60)}" for name, value in vars(self).items())
        return f"<stored {self.__stored_schema__.name}: {values}>"


def class_change(stored: ClassSchema, find: Callable[[str, str], type | None] = find_class) -> ClassChange | None:
    """How the class that `stored` describes has changed; None if its objects can be read as they are."""
    today = find(stored.module, stored.qualname)
    if today is None:
        return _gone(stored)
    schema = schema_of(today)
    if schema is None or schema == stored:  # without a schema the class pickles in its own way: leave it alone
        return None
    return _compare(stored, today)


def loads(data: bytes, changes: Iterable[ClassChange]) -> tuple[Any, tuple[ClassChange, ...]]:
    """Unpickle `data`, whose classes have changed as `changes` say. Return the content and all changes found.

    These are `changes`, and one for each other class that no longer exists: its objects become `StoredRecord`s too.
    """
    known = {(change.stored.module, change.stored.qualname): change for change in changes}
    content = _Unpickler(io.BytesIO(data), known).load()
    return content, tuple(known.values())


def load_as_stored(stream: io.BytesIO, changes: dict[tuple[str, str], ClassChange]) -> Any:
    """Unpickle one object. Objects of changed classes become `StoredRecord`s with the stored values.

    For callers that store them again: when read the next time, they become objects of today's classes if possible.
    `changes` is {(module, qualname): change}; classes that no longer exist are added to it.
    """
    return _AsStoredUnpickler(stream, changes).load()


def _gone(stored: ClassSchema) -> ClassChange:
    return ClassChange(stored, (), (f"class {stored.name} is gone.",))


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, changes: dict[tuple[str, str], ClassChange]) -> None:
        super().__init__(stream)
        self._changes = changes

    def find_class(self, module: str, name: str) -> Any:
        change = self._changes.get((module, name))
        if change is not None:
            return self._stand_in(change, module, name)
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError):
            change = self._changes[module, name] = _gone(ClassSchema(module, name, "", ()))
            return _record_class(change.stored)

    def _stand_in(self, change: ClassChange, module: str, name: str) -> type:
        return _builder(change.stored, find_class(module, name))


class _AsStoredUnpickler(_Unpickler):
    def _stand_in(self, change: ClassChange, module: str, name: str) -> type:
        if change.stored.fields or change.obstacles:
            return _record_class(change.stored)
        return super()._stand_in(change, module, name)  # there are no values to keep


@lru_cache(maxsize=512)
def _compare(stored: ClassSchema, today: type) -> ClassChange:
    schema = schema_of(today)
    assert schema is not None
    name = stored.name
    if (stored.kind == NAMED_TUPLE) != (schema.kind == NAMED_TUPLE):
        return ClassChange(stored, (), (f"class {name} was a {stored.kind} and is a {schema.kind}.",))
    differences: list[str] = []
    obstacles: list[str] = []
    if inspect.isabstract(today):
        obstacles.append(f"class {name} is abstract now.")
    before, after, defaults = dict(stored.fields), dict(schema.fields), _defaults(today)
    for field, annotation in after.items():
        if field not in before:
            if field in defaults:
                differences.append(f"'{field}' is new")
            else:
                obstacles.append(f"field '{field}' of {name} is new and has no default.")
        elif (change := annotation_change(before[field], annotation)) and not change.possible:
            obstacles.append(f"field '{field}' of {name} was {before[field]!r} and is {annotation!r}.")
        elif change.convert is not None:
            differences.append(f"'{field}' from {before[field]} to {annotation}")
    differences += [f"'{field}' is gone" for field in before if field not in after]
    if [field for field in before if field in after] != [field for field in after if field in before]:
        differences.append("another order of fields")
    return ClassChange(stored, tuple(differences), tuple(obstacles))


def _defaults(today: Any) -> dict[str, Callable[[], Any]]:
    """Return {field: function that makes its default}."""
    if issubclass(today, tuple):
        return {name: lambda value=value: value for name, value in today._field_defaults.items()}  # type: ignore[misc]
    found: dict[str, Callable[[], Any]] = {}
    for field in dataclasses.fields(today):
        # Compare the types: a dataclass that cloudpickle brought has its own copies of the marker MISSING.
        if type(field.default_factory) is not type(dataclasses.MISSING):
            found[field.name] = field.default_factory  # type: ignore[assignment]
        elif type(field.default) is not type(dataclasses.MISSING):
            found[field.name] = lambda value=field.default: value  # type: ignore[misc]
    return found


@lru_cache(maxsize=512)
def _builder(stored: ClassSchema, today: type | None) -> type:
    """Return the class that pickle uses instead of the stored one."""
    if today is None or _compare(stored, today).obstacles:
        return _record_class(stored)
    return _named_tuple_builder(stored, today) if stored.kind == NAMED_TUPLE else _dataclass_builder(stored, today)


@lru_cache(maxsize=512)
def _record_class(stored: ClassSchema) -> type[StoredRecord]:
    return type(stored.qualname, (StoredRecord,), {"__stored_schema__": stored})


def _converters(stored: ClassSchema, today: type) -> dict[str, Convert]:
    schema = schema_of(today)
    assert schema is not None
    after = dict(schema.fields)
    changes = {name: annotation_change(before, after[name]) for name, before in stored.fields if name in after}
    return {name: change.convert for name, change in changes.items() if change.convert is not None}


def _filler(stored: ClassSchema, today: type) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function from stored to today's values, {name: value}, in today's order. It keeps other attributes."""
    schema = schema_of(today)
    assert schema is not None
    names = [name for name, _ in schema.fields]
    dropped = {name for name, _ in stored.fields}.difference(names)
    converters, defaults = _converters(stored, today), _defaults(today)

    def fill(values: dict[str, Any]) -> dict[str, Any]:
        filled: dict[str, Any] = {}
        for name in names:
            if name in values:
                filled[name] = converters[name](values[name]) if name in converters else values[name]
            elif name in defaults:
                filled[name] = defaults[name]()
        filled.update((name, value) for name, value in values.items() if name not in filled and name not in dropped)
        return filled

    return fill


def _named_tuple_builder(stored: ClassSchema, today: Any) -> type:
    fill = _filler(stored, today)
    old_names = [name for name, _ in stored.fields]

    def new(_: type, *values: Any) -> Any:
        return today._make(fill(dict(zip(old_names, values, strict=True))).values())

    return type(stored.qualname, (), {"__new__": new})


class _Quiet:
    """Hides the `__init_subclass__` of the user's class, because it comes earlier in the MRO."""

    __slots__ = ()

    def __init_subclass__(cls, **_: Any) -> None:
        return


def _dataclass_builder(stored: ClassSchema, today: type) -> type:
    """Return a subclass of `today` whose objects become objects of `today` when they get their state.

    Pickle makes the object first and sets its state later. Meanwhile other objects may refer to it, so it cannot be
    replaced. But its class can, because the subclass has the same memory layout.
    """
    fill = _filler(stored, today)
    put = object.__setattr__
    has_dict = bool(today.__dictoffset__)

    def put_all(target: Any, values: dict[str, Any]) -> None:
        for name, value in fill(values).items():
            if has_dict or hasattr(today, name):
                put(target, name, value)

    def set_state(self: Any, state: Any) -> None:
        put(self, "__class__", today)
        put_all(self, _by_name(state, stored))

    def made() -> Any:
        """Return an object without fields: pickle never sets its state."""
        target: Any = object.__new__(today)
        put_all(target, {})
        return target

    # Not `type(...)`: that would call the user's metaclass and `__init_subclass__` with a class that is not theirs.
    quiet = type("_QuietMeta", (type(today),), {"mro": lambda cls: [cls, _Quiet, *today.__mro__]})
    methods = {"__setstate__": set_state} if stored.fields else {"__new__": lambda _, *__: made()}
    builder: type = type.__new__(quiet, stored.qualname, (today,), {"__slots__": (), **methods})
    return builder


def _by_name(state: Any, stored: ClassSchema) -> dict[str, Any]:
    """Return the state of a pickled object by field name, whichever form pickle gave it."""
    if isinstance(state, dict):
        return state
    if isinstance(state, tuple) and len(state) == 2:  # (attributes or None, slots or None)
        return {**(state[0] or {}), **(state[1] or {})}
    if isinstance(state, list) and stored.fields:
        return dict(zip((name for name, _ in stored.fields), state, strict=True))
    return {"state": state}


def _revive(schema: tuple[Any, ...], values: dict[str, Any]) -> Any:
    """Unpickle a `StoredRecord`: as an object of today's class if that is possible now, otherwise as a record again."""
    stored = ClassSchema(*schema)
    today = find_class(stored.module, stored.qualname)
    if today is None or schema_of(today) is None or not stored.fields or _compare(stored, today).obstacles:
        return _record_class(stored)(**values)
    if stored.kind == NAMED_TUPLE:
        return today._make(_filler(stored, today)(values).values())  # type: ignore[attr-defined]
    revived: Any = object.__new__(_builder(stored, today))
    revived.__setstate__(values)
    return revived
