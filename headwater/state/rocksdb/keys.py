"""Keys as bytes: equal keys have equal bytes, different keys different bytes, and no key's bytes begin with another's.

RocksDB compares bytes, so it needs what Python's `==` gives a dict for free: `1 == 1.0 == True` are one key, and so are
a NamedTuple and its tuple. What can be a key, and which keys are equal, is known from `key_classes.py`. Plain keys can
be had back from their bytes; of the others (`1.0`, a dataclass) whoever stores them keeps a pickle as well. The bytes
are persisted in native checkpoints: they must not change.
"""

from __future__ import annotations

import datetime
import struct
import uuid
from collections.abc import Callable, Iterable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Final
from zoneinfo import ZoneInfo

from headwater.common.errors import InvalidKeyError
from headwater.common.types import Row, RowKind
from headwater.state.keys.key_classes import (
    PARTS,
    Dataclass,
    check_class,
    class_name,
    compared_values,
    enum_name,
    known_form,
    row_fields,
    utc_text,
)

pack_int: Final = struct.Struct(">Bq").pack
pack_length: Final = struct.Struct(">BI").pack
_unpack_int: Final = struct.Struct(">q").unpack_from
_unpack_length: Final = struct.Struct(">I").unpack_from
_pack_float: Final = struct.Struct(">Bd").pack
_unpack_float: Final = struct.Struct(">d").unpack_from

INT: Final = 1
STR: Final = 2
_BIG_INT, _FLOAT, _BYTES, _NONE, _TUPLE, _UUID = range(3, 9)
# Keys with the following tags cannot be decoded.
_RATIO, _COMPLEX, _FROZENSET, _ROW, _NAMED_ROW, _ENUM, _TYPE, _MOMENT, _SPAN = range(32, 41)
_PARTS, _ROW_OF_KIND, _LOCAL_MOMENT = range(41, 44)
_DATACLASS = 48

MIN_INT: Final = -(2**63)
MAX_INT: Final = 2**63 - 1

Encoded = tuple[bytes, bool]
"""(bytes, True if `decode_key` returns the very same key, with its class)"""


def encode_key(key: Any) -> Encoded:
    """Return the bytes of `key`, which must be a key that `stable_hash` accepts."""
    encoder = _ENCODERS.get(key.__class__)
    return encoder(key) if encoder is not None else _encode_other(key)


def _encode_other(key: Any) -> Encoded:
    base, key = known_form(key)
    return _ENCODERS[base](key)[0], False


def decode_key(data: bytes, position: int = 0) -> tuple[Any, int]:
    """Return the key whose bytes begin at `position`, and where they end. Only for keys that can be decoded."""
    tag = data[position]
    position += 1
    if tag == INT:
        return _unpack_int(data, position)[0], position + 8
    if tag == _NONE:
        return None, position
    if tag == _FLOAT:
        return _unpack_float(data, position)[0], position + 8
    (length,) = _unpack_length(data, position)
    position += 4
    if tag == _TUPLE:
        parts = []
        for _ in range(length):
            part, position = decode_key(data, position)
            parts.append(part)
        return tuple(parts), position
    end = position + length
    return _DECODERS[tag](data[position:end]), end


def _encode_int(key: int) -> Encoded:
    if MIN_INT <= key <= MAX_INT:
        return pack_int(INT, key), True
    return _framed(_BIG_INT, key.to_bytes(key.bit_length() // 8 + 1, "big", signed=True)), True


def _encode_str(key: str) -> Encoded:
    return _framed(STR, key.encode("utf-8", "surrogatepass")), True


def _encode_bytes(key: bytes) -> Encoded:
    return _framed(_BYTES, key), True


def _encode_none(_: None) -> Encoded:
    return bytes((_NONE,)), True


def _encode_uuid(key: uuid.UUID) -> Encoded:
    return _framed(_UUID, key.bytes), True


def _encode_tuple(key: tuple[Any, ...]) -> Encoded:
    parts = list(map(encode_key, key))
    return pack_length(_TUPLE, len(parts)) + b"".join([part[0] for part in parts]), all(part[1] for part in parts)


def _encode_float(key: float) -> Encoded:
    if key.is_integer():
        return _encode_int(int(key))[0], False
    return _pack_float(_FLOAT, key), True


def _encode_complex(key: complex) -> Encoded:
    if key.imag:
        return _joined(_COMPLEX, map(_encode_float, (key.real, key.imag)))
    return _encode_float(key.real)[0], False


def _encode_number(key: Any) -> Encoded:
    """Whatever the class, a number has the bytes of the simplest number that equals it: int, float, fraction."""
    as_float = _as_float(key)
    if as_float is not None and not as_float.is_integer() and as_float == key:
        return _pack_float(_FLOAT, as_float), False
    whole = int(key)
    if whole == key:
        return _encode_int(whole)[0], False
    return _joined(_RATIO, map(_encode_int, key.as_integer_ratio()))


def _as_float(key: Any) -> float | None:
    try:
        return float(key)
    except OverflowError:
        return None


def _encode_frozenset(key: frozenset[Any]) -> Encoded:
    return _sorted(_FROZENSET, map(encode_key, key))


def _encode_row(key: Row) -> Encoded:
    kind = key.get_row_kind()
    encoded = _encode_fields(key)
    if kind is RowKind.INSERT:
        return encoded
    return _joined(_ROW_OF_KIND, (_encode_int(kind.value), encoded))


def _encode_fields(key: Row) -> Encoded:
    fields = row_fields(key)
    if fields is None:
        return _joined(_ROW, map(encode_key, key))
    # Rows with equal names in another order are equal, so the order must not count.
    return _sorted(_NAMED_ROW, map(_encode_tuple, fields))


def _encode_enum(key: Enum) -> Encoded:
    return _joined(_ENUM, (_encode_name(type(key)), encode_key(enum_name(key))))


def _encode_type(key: type) -> Encoded:
    check_class(key)
    return _encode_name(key)


def _encode_name(key: type) -> Encoded:
    return _framed(_TYPE, class_name(key).encode()), False


def _encode_moment(key: datetime.datetime | datetime.time | datetime.date) -> Encoded:
    """Equal moments in different time zones have the same bytes."""
    if not isinstance(key, (datetime.datetime, datetime.time)):
        return _framed(_MOMENT, key.isoformat().encode()), False
    moment = key.replace(fold=0)
    offset = moment.utcoffset()
    if offset is None:
        return _framed(_MOMENT, moment.isoformat().encode()), False
    if isinstance(moment, datetime.datetime):
        if offset != moment.replace(fold=1).utcoffset():
            return _encode_local(moment)
        return _framed(_MOMENT, utc_text(moment, offset).encode()), False
    since_midnight = datetime.timedelta(
        hours=moment.hour, minutes=moment.minute, seconds=moment.second, microseconds=moment.microsecond
    )
    return _framed(_MOMENT, b"Z" + _encode_timedelta(since_midnight - offset)[0]), False


def _encode_local(moment: datetime.datetime) -> Encoded:
    """A moment that its clock shows twice, or never: Python takes it to be equal to none of another time zone."""
    zone = moment.tzinfo
    if not isinstance(zone, ZoneInfo) or zone.key is None:
        raise InvalidKeyError(
            f"the key is {moment!r}, which its clock shows twice or never, with a time zone that is compared by "
            f"identity; use zoneinfo.ZoneInfo, or key by x.astimezone(datetime.UTC)"
        )
    return _joined(_LOCAL_MOMENT, (_encode_str(moment.replace(tzinfo=None).isoformat()), _encode_str(zone.key)))


def _encode_timedelta(key: datetime.timedelta) -> Encoded:
    return _joined(_SPAN, map(_encode_int, (key.days, key.seconds, key.microseconds)))


def _encode_dataclass(key: Any) -> Encoded:
    return _joined(_DATACLASS, (_encode_name(type(key)), *map(encode_key, compared_values(key))))


def _encode_parts(parts: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], Encoded]:
    return lambda key: _joined(_PARTS, map(encode_key, parts(key)))


def _framed(tag: int, content: bytes) -> bytes:
    return pack_length(tag, len(content)) + content


def _joined(tag: int, parts: Iterable[Encoded]) -> Encoded:
    content = [part[0] for part in parts]
    return pack_length(tag, len(content)) + b"".join(content), False


def _sorted(tag: int, parts: Iterable[Encoded]) -> Encoded:
    return _joined(tag, sorted(parts))


_DECODERS: dict[int, Callable[[bytes], Any]] = {
    STR: lambda data: data.decode("utf-8", "surrogatepass"),
    _BIG_INT: lambda data: int.from_bytes(data, "big", signed=True),
    _BYTES: lambda data: data,
    _UUID: lambda data: uuid.UUID(bytes=data),
}

_ENCODERS: dict[type, Callable[[Any], Encoded]] = {
    int: _encode_int,
    str: _encode_str,
    bytes: _encode_bytes,
    float: _encode_float,
    tuple: _encode_tuple,
    type(None): _encode_none,
    uuid.UUID: _encode_uuid,
    bool: lambda key: (_encode_int(key)[0], False),
    complex: _encode_complex,
    Decimal: _encode_number,
    Fraction: _encode_number,
    frozenset: _encode_frozenset,
    Row: _encode_row,
    Enum: _encode_enum,
    datetime.datetime: _encode_moment,
    datetime.time: _encode_moment,
    datetime.date: _encode_moment,
    datetime.timedelta: _encode_timedelta,
    type: _encode_type,
    Dataclass: _encode_dataclass,
    **{cls: _encode_parts(parts) for cls, parts in PARTS.items()},
}
