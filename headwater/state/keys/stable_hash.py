"""A hash of keys that is the same in every process, on every machine, for ever.

Python's own `hash` of a str differs from process to process, so it cannot say which partition owns a key. This one
can, and keeps Python's law: keys that are equal hash alike (`1 == 1.0 == True == Decimal(1)`). Which keys are equal is
known for the classes of `key_classes.py`; others are refused. The hash decides where persisted state is found again:
changing any value it returns breaks all checkpoints.
"""

from __future__ import annotations

import datetime
import struct
import sys
import uuid
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from xxhash import xxh32_intdigest

from headwater.common.errors import InvalidKeyError, StateError
from headwater.common.types import Row
from headwater.state.keys.key_classes import (
    PARTS,
    Dataclass,
    check_class,
    check_decimal,
    class_name,
    compared_values,
    enum_name,
    known_form,
    refuse_nan,
    row_fields,
    utc_text,
)

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

pack_signed = struct.Struct("<q").pack

_HASH_MODULUS = sys.hash_info.modulus
"""Smaller integers are their own hash."""

PLAIN_KEYS = frozenset((str, int, bytes, bool, type(None)))
"""All their objects can be keys."""


def stable_hash(key: Any) -> int:
    """An unsigned 32-bit hash of `key`; raises `InvalidKeyError` for what cannot be a key (see `key_classes.py`)."""
    hasher = _HASHERS.get(key.__class__)
    return hasher(key) if hasher is not None else _hash_other(key)


def _hash_other(key: Any) -> int:
    base, key = known_form(key)
    return _HASHERS[base](key)


def check_map_key(key: Any) -> None:
    """Raise `StateError` for what cannot be a key of a map state. Not for `PLAIN_KEYS`, which all can."""
    try:
        stable_hash(key)
    except InvalidKeyError as error:
        raise StateError(f"of a map state: {error}") from None


def _hash_str(key: str) -> int:
    return xxh32_intdigest(key.encode("utf-8", "surrogatepass"))


def _hash_bytes(key: bytes) -> int:
    return xxh32_intdigest(key)


def _hash_int(key: int | Fraction) -> int:
    return xxh32_intdigest(pack_signed(hash(key)))


def hash_integers(keys: Sequence[Any]) -> NDArray[numpy.uint32] | None:
    """Return `stable_hash` of many plain integers; None if one of `keys` is something else, or is too large."""
    import numpy  # here: only jobs with very many keys need it, and it makes the start slower

    if set(map(type, keys)) != {int}:
        return None
    try:
        integers = numpy.fromiter(keys, "<i8", len(keys))
    except OverflowError:
        return None
    return hash_int64(integers)


def hash_int64(integers: NDArray[numpy.int64]) -> NDArray[numpy.uint32] | None:
    """Return `stable_hash` of each; None if one is too large. Changes the array."""
    if integers.max() >= _HASH_MODULUS or integers.min() <= -_HASH_MODULUS:
        return None
    integers[integers == -1] = -2  # as Python's hash() does
    lanes = integers.view("<u4").reshape(-1, 2)  # little end first, as `pack_signed` writes them
    return _xxh32((lanes[:, 0], lanes[:, 1]))


def hash_integer_tuples(arrays: Sequence[NDArray[numpy.int64]]) -> NDArray[numpy.uint32] | None:
    """Return `stable_hash` of tuples, a part from each array; None if one is too large, or they have too many parts."""
    import numpy

    if len(arrays) > _PARTS_AT_MOST:
        return None
    parts = [hash_int64(array.copy()) for array in arrays]
    lanes: list[NDArray[numpy.uint32]] = []
    before: Any = numpy.uint32(ord("("))
    for part in parts:
        if part is None:
            return None
        lanes.append(before | (part << numpy.uint32(8)))
        before = part >> numpy.uint32(24)
    return _xxh32(lanes, before)


_PARTS_AT_MOST = 3
"""xxh32 is another function from 16 bytes on."""


def _xxh32(lanes: Sequence[NDArray[numpy.uint32]], last: NDArray[numpy.uint32] | None = None) -> NDArray[numpy.uint32]:
    """xxh32 of fewer than 16 bytes: four in each lane, little end first, and perhaps a last one."""
    import numpy

    hashed = numpy.full(len(lanes[0]), 0x165667B1 + 4 * len(lanes) + (last is not None), numpy.uint32)
    for lane in lanes:
        hashed += lane * numpy.uint32(0xC2B2AE3D)
        hashed = ((hashed << numpy.uint32(17)) | (hashed >> numpy.uint32(15))) * numpy.uint32(0x27D4EB2F)
    if last is not None:
        hashed += last * numpy.uint32(0x165667B1)
        hashed = ((hashed << numpy.uint32(11)) | (hashed >> numpy.uint32(21))) * numpy.uint32(0x9E3779B1)
    hashed ^= hashed >> numpy.uint32(15)
    hashed *= numpy.uint32(0x85EBCA77)
    hashed ^= hashed >> numpy.uint32(13)
    hashed *= numpy.uint32(0xC2B2AE3D)
    hashed ^= hashed >> numpy.uint32(16)
    return hashed


def _hash_number(key: Any) -> int:
    refuse_nan(key)
    # Python makes hash() of all numbers agree where they are equal, and does not salt it.
    return xxh32_intdigest(pack_signed(hash(key)))


def _hash_decimal(key: Decimal) -> int:
    check_decimal(key)
    return xxh32_intdigest(pack_signed(hash(key)))


def _hash_tuple(key: tuple[Any, ...]) -> int:
    # `_combine(b"(", map(stable_hash, key))`, at half its cost: tuples are frequent keys.
    parts = [(_HASHERS.get(part.__class__) or _hash_other)(part) for part in key]
    return xxh32_intdigest(struct.pack(f"<c{len(parts)}I", b"(", *parts))


def _hash_frozenset(key: frozenset[Any]) -> int:
    return _combine(b"{", sorted(map(stable_hash, key)))


def _hash_none(_: None) -> int:
    return xxh32_intdigest(b"None")


def _hash_row(key: Row) -> int:
    fields = row_fields(key)
    if fields is None:
        return _combine(b"R", map(stable_hash, key))
    # Rows with equal names in another order are equal, so the order must not count.
    return _combine(b"N", sorted(map(_hash_tuple, fields)))


def _hash_enum(key: Enum) -> int:
    return _combine(b"E", (_hash_str(class_name(type(key))), stable_hash(enum_name(key))))


def _hash_type(key: type) -> int:
    check_class(key)
    return _hash_str(class_name(key))


def _hash_uuid(key: uuid.UUID) -> int:
    return xxh32_intdigest(key.bytes)


def _hash_moment(key: datetime.datetime | datetime.time) -> int:
    """Equal moments in different time zones have the same hash."""
    moment = key.replace(fold=0)
    offset = moment.utcoffset()
    if offset is None:
        return _hash_str(moment.isoformat())
    if isinstance(moment, datetime.datetime):
        return _hash_str(utc_text(moment, offset))
    since_midnight = datetime.timedelta(
        hours=moment.hour, minutes=moment.minute, seconds=moment.second, microseconds=moment.microsecond
    )
    return _combine(b"Z", (_hash_timedelta(since_midnight - offset),))


def _hash_date(key: datetime.date) -> int:
    return _hash_str(key.isoformat())


def _hash_timedelta(key: datetime.timedelta) -> int:
    return _combine(b"D", map(_hash_int, (key.days, key.seconds, key.microseconds)))


def _hash_dataclass(key: Any) -> int:
    return _combine(b"C", (_hash_str(class_name(type(key))), *map(stable_hash, compared_values(key))))


def _hash_parts(parts: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    return lambda key: _hash_tuple(parts(key))


def _combine(tag: bytes, hashes: Iterable[int]) -> int:
    parts = tuple(hashes)
    return xxh32_intdigest(tag + struct.pack(f"<{len(parts)}I", *parts))


_HASHERS: dict[type, Callable[[Any], int]] = {
    str: _hash_str,
    bytes: _hash_bytes,
    int: _hash_int,
    bool: _hash_int,
    float: _hash_number,
    complex: _hash_number,
    Decimal: _hash_decimal,
    Fraction: _hash_int,
    tuple: _hash_tuple,
    type(None): _hash_none,
    frozenset: _hash_frozenset,
    Row: _hash_row,
    Enum: _hash_enum,
    uuid.UUID: _hash_uuid,
    datetime.datetime: _hash_moment,
    datetime.time: _hash_moment,
    datetime.date: _hash_date,
    datetime.timedelta: _hash_timedelta,
    type: _hash_type,
    Dataclass: _hash_dataclass,
    **{cls: _hash_parts(parts) for cls, parts in PARTS.items()},
}
