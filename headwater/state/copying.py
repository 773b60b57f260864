"""Which values may be shared, and how the others are copied.

The law: what a function emits or stores is what it was at that moment. A value that cannot change in place is shared
between functions, state and records under way. Any other is copied where it changes hands.
"""

from __future__ import annotations

import copy
import copyreg
import dataclasses
import datetime
import pickle
import re
import uuid
from collections.abc import Callable, Iterable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import chain
from types import BuiltinFunctionType, FunctionType
from typing import Any

from headwater.common.types import Row

ATOMIC: set[type] = {
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    type,
    Decimal,
    Fraction,
    uuid.UUID,
    re.Pattern,
    datetime.date,
    datetime.time,
    datetime.datetime,
    datetime.timedelta,
    datetime.timezone,
    FunctionType,
    BuiltinFunctionType,
}
"""Exact classes whose instances, and all they refer to, never change. Others are added at run time (enums, numpy)."""

PLAIN = frozenset({type(None), bool, int, float, str, bytes})
"""Those of `ATOMIC` whose instances can always be pickled."""

_MUTABLE: set[type] = {list, dict, set, bytearray, Row}
"""Exact classes whose instances can change. Others are added at run time."""

_PARTS: dict[type, Callable[[Any], Iterable[Any]]] = {tuple: tuple.__iter__, frozenset: frozenset.__iter__}
"""How to get all that an instance refers to, for exact classes that only change if that does. Others are added."""


def captured(value: Any) -> Any:
    """`value` as it is now, whatever is done to it later. Costs next to nothing for plain values and tuples of them."""
    if type(value) is tuple:
        for part in value:
            if type(part) not in ATOMIC:
                return protective_copy(value)
        return value
    return value if type(value) in ATOMIC else protective_copy(value)


class PlainList(list[Any]):
    """A list of which somebody has seen that none of its values can be changed. Nothing else may be added."""

    __slots__ = ()


def all_captured(values: list[Any]) -> list[Any]:
    """`captured` for each of `values`: the same list if none of them can change."""
    return values if are_plain(values) else list(map(captured, values))


def are_plain(values: list[Any]) -> bool:
    """True if none of `values` can be changed, as is the case for atoms and tuples of atoms. False: look closer."""
    if type(values) is PlainList:
        return True
    kinds = set(map(type, values))
    if tuple in kinds:
        if len(kinds) > 1:
            values = [value for value in values if type(value) is tuple]
            kinds.remove(tuple)
            if not kinds <= ATOMIC:
                return False
        return ATOMIC.issuperset(map(type, chain.from_iterable(values)))
    return kinds <= ATOMIC


def is_immutable(value: Any) -> bool:
    """True only if nothing reachable from `value` can change in place."""
    # Not value.__class__, which an object may define as it likes.
    cls = type(value)
    if cls in ATOMIC:
        return True
    if cls in _MUTABLE:
        return False
    if cls is tuple:
        parts = value
    elif cls in _PARTS:
        parts = _PARTS[cls](value)
    else:
        _learn(cls)
        return is_immutable(value)
    # Not all(map(is_immutable, parts)): tuples of a few plain values are by far the most frequent.
    for part in parts:  # noqa: SIM110
        if type(part) not in ATOMIC and not is_immutable(part):
            return False
    return True


def are_immutable(values: Iterable[Any]) -> bool:
    """Whether `is_immutable` holds for all of `values`."""
    return ATOMIC.issuperset(map(type, values)) or all(map(is_immutable, values))


def _learn(cls: type) -> None:
    """Put a class that was not seen before into `ATOMIC`, `_PARTS` or `_MUTABLE`."""
    if issubclass(cls, Enum) or _is_numpy_scalar(cls):
        ATOMIC.add(cls)
    elif issubclass(cls, tuple) and not cls.__dictoffset__:  # NamedTuple
        _PARTS[cls] = tuple.__iter__
    elif issubclass(cls, frozenset) and not cls.__dictoffset__:
        _PARTS[cls] = frozenset.__iter__
    # Its own parameters: a subclass that is no dataclass inherits them, and may have attributes that can be set.
    elif "__dataclass_params__" in vars(cls) and vars(cls)["__dataclass_params__"].frozen:
        _PARTS[cls] = _fields_of(cls)
    else:
        _MUTABLE.add(cls)


def _fields_of(cls: Any) -> Callable[[Any], Iterable[Any]]:
    if not any("__slots__" in vars(base) for base in cls.__mro__):
        return lambda value: value.__dict__.values()
    names = [field.name for field in dataclasses.fields(cls)]
    return lambda value: [getattr(value, name, None) for name in names]


def _is_numpy_scalar(cls: type) -> bool:
    if cls.__module__ != "numpy" or cls.__name__ in ("void", "object_"):
        return False
    return any(base.__name__ == "generic" and base.__module__ == "numpy" for base in cls.__mro__)


def protective_copy(value: Any) -> Any:
    """A copy that shares nothing mutable with `value`; `value` itself if it is immutable, or cannot be copied.

    Shared parts and cycles inside the value stay as they are: one level of plain containers is copied directly, what is
    nested deeper goes through pickle (three to five times faster than `copy.deepcopy`, which is for the rest).
    What cannot be copied (a lock, a connection) is not refused here: who persists it or sends it on says so best.
    """
    if is_immutable(value):
        return value
    copier = _SHALLOW.get(type(value), _copy_instance)
    if (flat := copier(value)) is not None:
        return flat
    try:
        return pickle.loads(pickle.dumps(value, 5))
    except Exception:
        pass
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


def _copy_sequence(value: Any) -> Any:
    return value.copy() if are_immutable(value) else None


def _copy_dict(value: dict[Any, Any]) -> Any:
    return value.copy() if are_immutable(value.values()) else None


def _copy_row(value: Row) -> Row | None:
    if not are_immutable(value):
        return None
    copied = Row(*value)
    if (names := value.get_field_names()) is not None:
        copied.set_field_names(names)
    copied.set_row_kind(value.get_row_kind())
    return copied


def _copy_instance(value: Any) -> Any:
    """A copy of an object that consists of immutable attributes; None if it has others, or is not that simple."""
    cls = type(value)
    if cls not in _SIMPLE:
        if not _is_simple(cls):
            return None
        _SIMPLE.add(cls)
    attributes = value.__dict__
    if not are_immutable(attributes.values()):
        return None
    copied = object.__new__(cls)
    copied.__dict__.update(attributes)
    return copied


def _is_simple(cls: type) -> bool:
    if (cls.__basicsize__, cls.__itemsize__, cls.__dictoffset__) != _SHAPE or cls in copyreg.dispatch_table:
        return False
    return all(getattr(cls, name, None) is getattr(object, name, None) for name in _WAYS_TO_COPY)


class _Simple:
    """As simple as a class can be."""


_SIMPLE: set[type] = set()
"""Classes whose instances are their `__dict__` and nothing else: no slots, no way of their own to be copied. A memo."""
_SHAPE = (_Simple.__basicsize__, _Simple.__itemsize__, _Simple.__dictoffset__)
_WAYS_TO_COPY = (
    "__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__", "__copy__",
    "__deepcopy__",
)  # fmt: skip


_SHALLOW: dict[type, Callable[[Any], Any]] = {
    list: _copy_sequence,
    set: _copy_sequence,
    bytearray: _copy_sequence,
    dict: _copy_dict,
    Row: _copy_row,
}
