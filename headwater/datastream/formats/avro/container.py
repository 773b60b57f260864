"""The container files of Avro: a header with the schema, then blocks of records, each with a mark at its end.

Blocks are read here and not by fastavro, because a reader must be able to go on at any block, and because fastavro
takes a file that ends within the head of a block for a whole one.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any, BinaryIO, Final

import zstandard

from headwater.common.errors import ConfigurationError
from headwater.common.optional_library import optional_library
from headwater.datastream.formats.avro.schema import AvroSchema

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_LONGEST_NUMBER: Final = 10


class DamagedContainer(Exception):
    """The bytes are not those of an Avro file. The text says at which one."""


@dataclass(frozen=True)
class Block:
    """Some records of a file, still encoded."""

    offset: int
    """Of its first byte in the file."""
    records: int
    data: BytesIO


class Container:
    """The blocks of one file, from any block on. The file belongs to the caller."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self.offset = 0
        """Where the next block begins."""
        if self._take(len(_MAGIC)) != _MAGIC:
            raise DamagedContainer("it does not begin as an Avro file does")
        header = self._header()
        self.schema = _schema_of(header.get("avro.schema"))
        self._decompress = _decompressor(header.get("avro.codec", b"null").decode("ascii", "replace"))
        self._sync = self._take(_SYNC_BYTES)

    def seek(self, offset: int) -> None:
        """Go on with the block that begins at `offset`."""
        self._file.seek(offset)
        self.offset = offset

    def next_block(self) -> Block | None:
        """The block at `offset`; None at the end of the file."""
        start = self.offset
        if start >= self._size:
            return None
        records, length = self._number(), self._number()
        if records < 0 or length < 0 or self.offset + length > self._size:
            raise DamagedContainer(f"the block at byte {start} says that it has {records} records in {length} bytes")
        data = self._take(length)
        if self._take(_SYNC_BYTES) != self._sync:
            raise DamagedContainer(f"the block at byte {start} does not end with the file's mark")
        try:
            return Block(start, records, BytesIO(self._decompress(data)))
        except Exception as error:  # each compression has exceptions of its own
            if isinstance(error, ConfigurationError):
                raise
            raise DamagedContainer(f"the block at byte {start} cannot be decompressed: {error}") from error

    def _header(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        while (count := self._number()) != 0:
            if count < 0:
                self._number()  # the length in bytes, for readers that skip
            for _ in range(abs(count)):
                name = self._take(self._number()).decode("utf-8", "replace")
                found[name] = self._take(self._number())
        return found

    def _take(self, count: int) -> bytes:
        if count < 0 or self.offset + count > self._size:
            raise DamagedContainer(f"it ends too early, after {self._size} bytes; at byte {self.offset} more must come")
        data = self._file.read(count)
        if len(data) != count:
            raise DamagedContainer(f"it ends too early, after {self.offset + len(data)} bytes")
        self.offset += count
        return data

    def _number(self) -> int:
        """A number as Avro writes it: seven bits a byte, the lowest first, signs alternating."""
        value = shift = 0
        for _ in range(_LONGEST_NUMBER):
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
        raise DamagedContainer(f"there is no number at byte {self.offset - _LONGEST_NUMBER}")


def _schema_of(text: bytes | None) -> AvroSchema:
    if text is None:
        raise DamagedContainer("its header has no schema")
    try:
        return AvroSchema.parse_string(text.decode())
    except (ConfigurationError, UnicodeDecodeError) as error:
        raise DamagedContainer(f"the schema in its header cannot be used: {error}") from error


def _decompressor(codec: str) -> Callable[[bytes], bytes]:
    known: dict[str, Callable[[bytes], bytes]] = {
        "null": bytes,
        "deflate": lambda data: zlib.decompress(data, -zlib.MAX_WBITS),
        "bzip2": bz2.decompress,
        "xz": lzma.decompress,
        "zstandard": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
        "snappy": _snappy,
    }
    if codec not in known:
        raise DamagedContainer(f"it is compressed with {codec!r}; expected one of {', '.join(known)}")
    return known[codec]


def _snappy(data: bytes) -> bytes:
    cramjam: Any = optional_library("cramjam", "avro", "Avro with snappy")
    content = bytes(cramjam.snappy.decompress_raw(data[:-4]))
    if zlib.crc32(content) != int.from_bytes(data[-4:], "big"):
        raise ValueError("it does not have its checksum")
    return content
