"""Kafka's wire format, as far as the test broker speaks it: the old, non-flexible versions of each request."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

TRANSACTIONAL = 0x10
CONTROL = 0x20
COMPRESSION = 0x07


class Reader:
    """Reads the fields of a request in order."""

    def __init__(self, data: bytes, offset: int = 0) -> None:
        self._data = data
        self._offset = offset

    def number(self, form: str) -> int:
        """One number, in the form of `struct`: b, h, i, q."""
        (value,) = struct.unpack_from(f">{form}", self._data, self._offset)
        self._offset += struct.calcsize(f">{form}")
        return int(value)

    def text(self) -> str | None:
        size = self.number("h")
        return None if size < 0 else self._take(size).decode()

    def name(self) -> str:
        """A text that must be there."""
        return self.text() or ""

    def blob(self) -> bytes:
        return self._take(max(0, self.number("i")))

    def array(self, item: Callable[[], T]) -> list[T] | None:
        size = self.number("i")
        return None if size < 0 else [item() for _ in range(size)]

    def items(self, item: Callable[[], T]) -> list[T]:
        """An array that must be there."""
        return self.array(item) or []

    def _take(self, size: int) -> bytes:
        self._offset += size
        return self._data[self._offset - size : self._offset]


def numbers(form: str, *values: int) -> bytes:
    return struct.pack(f">{form}", *values)


def text(value: str | None) -> bytes:
    if value is None:
        return numbers("h", -1)
    encoded = value.encode()
    return numbers("h", len(encoded)) + encoded


def array(items: Iterable[bytes]) -> bytes:
    found = list(items)
    return numbers("i", len(found)) + b"".join(found)


# --- batches of records (format 2)


class Batch:
    """The head of a batch of records, as a producer sent it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        (self.attributes,) = struct.unpack_from(">h", data, 21)
        self.last_delta, self.first_timestamp, self.max_timestamp = struct.unpack_from(">iqq", data, 23)
        self.producer_id, self.producer_epoch, self.sequence, self.count = struct.unpack_from(">qhii", data, 43)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    def at(self, offset: int) -> bytes:
        """The batch with its first record at `offset`."""
        return numbers("q", offset) + self.data[8:]

    def timestamps(self) -> Iterator[tuple[int, int]]:
        """Yield (offset delta, timestamp) of the records; of a compressed batch only that of the last one."""
        if self.attributes & COMPRESSION:
            yield 0, self.max_timestamp
            return
        offset = 61
        for _ in range(self.count):
            size, offset = _varint(self.data, offset)
            end = offset + size
            timestamp_delta, position = _varint(self.data, offset + 1)
            offset_delta, _ = _varint(self.data, position)
            yield offset_delta, self.first_timestamp + timestamp_delta
            offset = end


def control_batch(producer_id: int, producer_epoch: int, *, commit: bool) -> bytes:
    """The batch that ends a transaction on a partition."""
    key, value = numbers("hh", 0, int(commit)), numbers("hi", 0, 0)
    record = b"\0" + b"".join(map(_zigzag, (0, 0, len(key)))) + key + _zigzag(len(value)) + value + _zigzag(0)
    record = _zigzag(len(record)) + record
    now_ms = int(time.time() * 1000)
    attributes = TRANSACTIONAL | CONTROL
    tail = numbers("hiqqqhii", attributes, 0, now_ms, now_ms, producer_id, producer_epoch, -1, 1) + record
    body = numbers("ib", 0, 2) + numbers("I", _crc32c(tail)) + tail
    return numbers("qi", 0, len(body)) + body


def _zigzag(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return a zigzag number, and the offset behind it."""
    value = shift = 0
    while True:
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), offset


def _crc_table() -> list[int]:
    table = []
    for number in range(256):
        crc = number
        for _ in range(8):
            crc = (crc >> 1) ^ 0x82F63B78 if crc & 1 else crc >> 1
        table.append(crc)
    return table


_TABLE = _crc_table()


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF
