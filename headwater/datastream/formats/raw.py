"""One value as the bytes of a message: text, bytes, or a number in so many bytes, as in Flink's raw format."""

from __future__ import annotations

import struct
from typing import Any, Final

from headwater.common.errors import ConfigurationError, SerializationError, short_repr
from headwater.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    SerializationSchema,
    SimpleStringSchema,
)
from headwater.common.type_system.information import BasicType, BasicTypeInfo, PrimitiveArrayTypeInfo, TypeInformation

__all__ = ["RawSchema"]

_CODES: Final = {
    BasicType.BOOLEAN: "?",
    BasicType.BYTE: "b",
    BasicType.SHORT: "h",
    BasicType.INT: "i",
    BasicType.LONG: "q",
    BasicType.FLOAT: "f",
    BasicType.DOUBLE: "d",
}


class RawSchema(SerializationSchema, DeserializationSchema):
    """Reads and writes values of one type. None is no bytes at all, for all types but text."""

    def __init__(self, type_info: TypeInformation, charset: str = "UTF-8", endianness: str = "big-endian") -> None:
        """:param type_info: STRING, BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, or PRIMITIVE_ARRAY(BYTE) for bytes.
        :param endianness: of numbers: 'big-endian' or 'little-endian'.
        """
        if endianness not in ("big-endian", "little-endian"):
            raise ConfigurationError(f"raw: endianness is {endianness!r}; expected 'big-endian' or 'little-endian'")
        self._type = type_info
        self._inner: SimpleStringSchema | ByteArraySchema | None = None
        basic = type_info.basic_type if isinstance(type_info, BasicTypeInfo) else None
        if basic is BasicType.STRING:
            self._inner = SimpleStringSchema(charset)
        elif isinstance(type_info, PrimitiveArrayTypeInfo) and type_info.element_type == BasicTypeInfo.BYTE_TYPE_INFO():
            self._inner = ByteArraySchema()
        elif basic in _CODES:
            self._code = (">" if endianness == "big-endian" else "<") + _CODES[basic]
        else:
            raise ConfigurationError(
                f"raw: {type_info!r} is not one value of bytes; expected STRING, BOOLEAN, a number of fixed size, or "
                "PRIMITIVE_ARRAY(BYTE)"
            )

    def serialize(self, value: Any) -> bytes:
        if value is None:
            return b""
        if self._inner is not None:
            return self._inner.serialize(value)
        fits = isinstance(value, bool) if self._code[1] == "?" else not isinstance(value, bool)
        try:
            if fits:
                return struct.pack(self._code, value)
        except (struct.error, OverflowError):
            pass
        raise SerializationError(f"raw: expected {self._type!r}, found {type(value).__name__} {short_repr(value, 100)}")

    def deserialize(self, message: bytes) -> Any:
        if self._inner is not None:
            return self._inner.deserialize(message)
        if not message:
            return None
        try:
            return struct.unpack(self._code, message)[0]
        except struct.error:
            size = struct.calcsize(self._code)
            raise SerializationError(
                f"raw: {short_repr(message, 100)} has {len(message)} bytes; {self._type!r} has {size}"
            ) from None
