"""One value as bytes."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from headwater.common import Types
from headwater.common.errors import ConfigurationError, SerializationError
from headwater.datastream.formats.raw import RawSchema


@pytest.mark.parametrize(
    ("type_info", "value", "message"),
    [
        (Types.STRING(), "å", b"\xc3\xa5"),
        (Types.STRING(), "", b""),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"\0\1", b"\0\1"),
        (Types.BOOLEAN(), True, b"\1"),
        (Types.BYTE(), -1, b"\xff"),
        (Types.SHORT(), 258, b"\1\2"),
        (Types.INT(), -2, b"\xff\xff\xff\xfe"),
        (Types.LONG(), 1, b"\0\0\0\0\0\0\0\1"),
        (Types.FLOAT(), 1.5, b"\x3f\xc0\0\0"),
        (Types.DOUBLE(), 1.5, b"\x3f\xf8\0\0\0\0\0\0"),
        (Types.LONG(), None, b""),
    ],
)
def test_values(type_info: Any, value: Any, message: bytes) -> None:
    schema = pickle.loads(pickle.dumps(RawSchema(type_info)))
    assert schema.serialize(value) == message
    assert schema.deserialize(message) == value


def test_settings() -> None:
    assert RawSchema(Types.INT(), endianness="little-endian").serialize(1) == b"\1\0\0\0"
    assert RawSchema(Types.STRING(), charset="latin-1").deserialize(b"\xe5") == "å"
    with pytest.raises(ConfigurationError, match="endianness is 'middle'"):
        RawSchema(Types.INT(), endianness="middle")
    with pytest.raises(ConfigurationError, match="is not one value of bytes"):
        RawSchema(Types.ROW([Types.INT()]))


def test_what_does_not_fit() -> None:
    for value in ("1", 2**31, 1.5, True):
        with pytest.raises(SerializationError, match="raw: expected Integer, found"):
            RawSchema(Types.INT()).serialize(value)
    with pytest.raises(SerializationError, match="expected Boolean, found int 1"):
        RawSchema(Types.BOOLEAN()).serialize(1)
    with pytest.raises(SerializationError, match="has 3 bytes; Integer has 4"):
        RawSchema(Types.INT()).deserialize(b"abc")
