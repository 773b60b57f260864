"""A hash of keys that is the same in every process, on every machine, for ever.

Python's own `hash` of a str differs from process to process, so it cannot say which partition owns a key. This one
can, and keeps Python's law: keys that are equal hash alike (`1 == 1.0 == True == Decimal(1)`). It decides where
persisted state is found again: changing any value it returns breaks all checkpoints.
"""

from __future__ import annotations

import copyreg
import dataclasses
import datetime
import numbers
import struct
import sys
import uuid
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from xxhash import xxh32_intdigest

from headwater.common.errors import InvalidKeyError, short_repr
from headwater.common.types import Row

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

pack_signed = struct.Struct("<q").pack

_HASH_MODULUS = sys.hash_info.modulus
"""Smaller integers are their own hash."""

_CURE = "return a str, number, tuple or another immutable value from the key selector"


def stable_hash(key: Any) -> int:
    """An unsigned 32-bit hash of `key`; raises `InvalidKeyError` for what cannot be a key (unhashable, NaN).

    Objects of user classes are hashed by class and pickled state, so their `__eq__` must compare that state.
    """
    hasher = _HASHERS.get(key.__class__)
    return hasher(key) if hasher is not None else _hash_by_ancestry(key)


def _hash_str(key: str) -> int:
    return xxh32_intdigest(key.encode("utf-8", "surrogatepass"))


def _hash_bytes(key: bytes | memoryview) -> int:
    return xxh32_intdigest(key)


def _hash_int(key: int) -> int:
    return xxh32_intdigest(pack_signed(hash(key)))


def hash_integers(keys: Sequence[Any]) -> NDArray[numpy.uint32] | None:
    """`stable_hash` of many plain integers at once; None if one of `keys` is something else, or is too large."""
    import numpy  # only jobs with very many keys need it, and it would make every start slower

    if set(map(type, keys)) != {int}:
        return None
    try:
        integers = numpy.fromiter(keys, "<i8", len(keys))
    except OverflowError:
        return None
    if integers.max() >= _HASH_MODULUS or integers.min() <= -_HASH_MODULUS:
        return None
    integers[integers == -1] = -2  # as Python's hash() does
    lanes = integers.view("<u4").reshape(-1, 2)  # little end first, as `pack_signed` writes them
    hashed = numpy.full(len(keys), 0x165667B1 + 8, numpy.uint32)
    for lane in (lanes[:, 0], lanes[:, 1]):
        hashed += lane * numpy.uint32(0xC2B2AE3D)
        hashed = ((hashed << numpy.uint32(17)) | (hashed >> numpy.uint32(15))) * numpy.uint32(0x27D4EB2F)
    hashed ^= hashed >> numpy.uint32(15)
    hashed *= numpy.uint32(0x85EBCA77)
    hashed ^= hashed >> numpy.uint32(13)
    hashed *= numpy.uint32(0xC2B2AE3D)
    hashed ^= hashed >> numpy.uint32(16)
    return hashed


def _hash_number(key: Any) -> int:
    _refuse_nan(key)
    # Python makes hash() of all numbers agree where they are equal, and does not salt it.
    return xxh32_intdigest(pack_signed(hash(key)))


def _refuse_nan(key: Any) -> None:
    try:
        is_nan = bool(key != key)
    except ArithmeticError:  # a signalling Decimal NaN does not even let itself be compared
        is_nan = True
    if is_nan:
        raise InvalidKeyError(f"the key is {key!r}, which is not equal to itself and would never be found; {_CURE}")


def _hash_tuple(key: tuple[Any, ...]) -> int:
    # `_combine(b"(", map(stable_hash, key))`, at half its cost: tuples are frequent keys.
    parts = [(_HASHERS.get(part.__class__) or _hash_by_ancestry)(part) for part in key]
    return xxh32_intdigest(struct.pack(f"<c{len(parts)}I", b"(", *parts))


def _hash_frozenset(key: frozenset[Any]) -> int:
    return _combine(b"{", sorted(map(stable_hash, key)))


def _hash_none(_: None) -> int:
    return xxh32_intdigest(b"None")


def _hash_row(key: Row) -> int:
    names = key.get_field_names()
    if names is None:
        return _combine(b"R", map(stable_hash, key))
    # Rows with equal names in another order are equal, so the order must not count.
    return _combine(b"N", sorted(_hash_tuple(pair) for pair in zip(names, key, strict=False)))


def _hash_enum(key: Enum) -> int:
    return _combine(b"E", (_hash_type(type(key)), _hash_str(key.name)))


def _hash_type(key: type) -> int:
    return _hash_str(f"{key.__module__}.{key.__qualname__}")


def _hash_uuid(key: uuid.UUID) -> int:
    return xxh32_intdigest(key.bytes)


def _hash_moment(key: datetime.datetime | datetime.time) -> int:
    """Moments that are equal in different time zones hash alike."""
    moment = key.replace(fold=0)
    offset = moment.utcoffset()
    if offset is None:
        return _hash_str(moment.isoformat())
    if isinstance(moment, datetime.datetime):
        return _hash_str((moment.replace(tzinfo=None) - offset).isoformat() + "Z")
    since_midnight = datetime.timedelta(
        hours=moment.hour, minutes=moment.minute, seconds=moment.second, microseconds=moment.microsecond
    )
    return _combine(b"Z", (_hash_timedelta(since_midnight - offset),))


def _hash_date(key: datetime.date) -> int:
    return _hash_str(key.isoformat())


def _hash_timedelta(key: datetime.timedelta) -> int:
    return _combine(b"D", map(_hash_int, (key.days, key.seconds, key.microseconds)))


def _hash_dataclass(key: Any) -> int:
    values = (getattr(key, field.name) for field in dataclasses.fields(key) if field.compare)
    return _combine(b"C", (_hash_type(type(key)), *map(stable_hash, values)))


def _hash_object(key: Any) -> int:
    """By what pickle would store, but by structure: bytes of a pickle differ between equal objects."""
    try:
        reduced = key.__reduce_ex__(4)
    except Exception as error:
        raise InvalidKeyError(f"the key {short_repr(key)} cannot be pickled ({error}); {_CURE}") from error
    return _hash_structure(reduced)


def _hash_structure(part: Any) -> int:
    if isinstance(part, (list, tuple)):
        return _combine(b"[", map(_hash_structure, part))
    if isinstance(part, dict):
        return _combine(b"m", sorted(_hash_structure(pair) for pair in part.items()))
    if isinstance(part, (set, frozenset)):
        return _combine(b"{", sorted(map(_hash_structure, part)))
    if callable(part) and hasattr(part, "__qualname__"):
        return _hash_type(part)  # functions have the same two names
    return stable_hash(part)


def _combine(tag: bytes, hashes: Iterable[int]) -> int:
    parts = tuple(hashes)
    return xxh32_intdigest(tag + struct.pack(f"<{len(parts)}I", *parts))


_HASHERS: dict[type, Callable[[Any], int]] = {
    str: _hash_str,
    bytes: _hash_bytes,
    int: _hash_int,
    bool: _hash_int,
    float: _hash_number,
    Decimal: _hash_number,
    Fraction: _hash_number,
    tuple: _hash_tuple,
    type(None): _hash_none,
    frozenset: _hash_frozenset,
    Row: _hash_row,
    uuid.UUID: _hash_uuid,
    datetime.datetime: _hash_moment,
    datetime.time: _hash_moment,
    datetime.date: _hash_date,
    datetime.timedelta: _hash_timedelta,
}

# Subclasses are equal to their base's values (a NamedTuple to a tuple, an IntEnum to an int), so these come first.
_ANCESTORS: tuple[tuple[type | tuple[type, ...], Callable[[Any], int]], ...] = (
    (str, _hash_str),
    ((bytes, memoryview), _hash_bytes),
    (int, _hash_int),
    (numbers.Number, _hash_number),
    (tuple, _hash_tuple),
    (frozenset, _hash_frozenset),
    (Row, _hash_row),
    (Enum, _hash_enum),
    (uuid.UUID, _hash_uuid),
    ((datetime.datetime, datetime.time), _hash_moment),
    (datetime.date, _hash_date),
    (datetime.timedelta, _hash_timedelta),
    (type, _hash_type),
)


def _hash_by_ancestry(key: Any) -> int:
    """For classes not met before. Raises for what Python cannot hash, or hashes by identity."""
    cls = type(key)
    try:
        hash(key)
    except TypeError as error:
        raise InvalidKeyError(f"the key {short_repr(key)} is unhashable ({error}); {_CURE}") from error
    _refuse_nan(key)
    for ancestor, hasher in _ANCESTORS:
        if isinstance(key, ancestor):
            return hasher(key)
    if getattr(cls, "__hash__", None) is object.__hash__ and cls not in copyreg.dispatch_table:
        raise InvalidKeyError(
            f"the key {short_repr(key)} is a {cls.__qualname__}, which compares by identity: a copy that came through "
            f"a shuffle or checkpoint would be another key; make it a frozen dataclass, define __eq__ and __hash__, "
            f"or {_CURE}"
        )
    return _hash_dataclass(key) if dataclasses.is_dataclass(key) else _hash_object(key)
