"""Output that waits for its commit: a file of blocks of messages in checkpoint storage.

head    8 bytes, "HWSPOOL" and the version
block   length (4), xxh64 of the content (8), content: a batch of messages, in the sink's own form (msgpack)
end     length 0, number of messages (8)
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

import msgspec
import xxhash

from headwater.common.connector import OutputFiles
from headwater.common.errors import CheckpointError

_HEAD: Final = b"HWSPOOL\x01"
_BLOCK: Final = struct.Struct("<IQ")
_encoder = msgspec.msgpack.Encoder()


class Spooled(msgspec.Struct, frozen=True):
    """A committable: messages of one partition in one epoch. In a file, or, without checkpoint storage, here."""

    job_id: str
    """Of the job that wrote it. A job that starts from another one's checkpoint may have to commit its output."""
    epoch: int
    partition: int
    part: int
    """Files of one partition and epoch are numbered."""
    messages: int
    size: int
    topic: str
    """Where the first message goes, if the sink asks for that."""
    name: str = ""
    content: bytes = b""

    @property
    def order(self) -> tuple[int, int, int]:
        return self.epoch, self.partition, self.part

    @property
    def identity(self) -> str:
        """A short text that no other output has, and that this has for ever: begins the ids of its messages."""
        name = self.name or f"{self.job_id}-{self.epoch}-{self.partition}-{self.part}"
        return xxhash.xxh128_hexdigest(name.encode())


class SpoolFile:
    """Collects messages. Large output goes to a file as it comes; nothing is kept in memory but one block."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.messages = 0
        self.size = len(_HEAD)
        self.topic = ""
        file.write(_HEAD)

    def add(self, batch: Any, count: int, topic: str = "") -> None:
        """Append a batch of `count` messages."""
        content = _encoder.encode(batch)
        self._file.write(_BLOCK.pack(len(content), xxhash.xxh64_intdigest(content)))
        self._file.write(content)
        self.topic = self.topic or topic
        self.messages += count
        self.size += _BLOCK.size + len(content)

    def end(self) -> None:
        self._file.write(_BLOCK.pack(0, self.messages))
        self.size += _BLOCK.size


def read_spool(
    spooled: Spooled, files: OutputFiles | None, form: Any, count_of: Callable[[Any], int] = len
) -> Iterator[Any]:
    """Yield the batches of messages, each a `form`; `count_of` counts the messages of one.

    Raises CheckpointError, at the latest at the end, if any is missing or damaged.
    """
    if spooled.name and files is None:
        raise CheckpointError(f"output file {spooled.name} cannot be read: the job has no checkpoint storage any more")
    try:
        file = files.open(spooled.name) if spooled.name and files is not None else io.BytesIO(spooled.content)
    except FileNotFoundError:
        raise CheckpointError(
            f"output file {spooled.name} of epoch {spooled.epoch} is missing in {files!r}: {spooled.messages} messages "
            "that a checkpoint promises cannot be written. Restore the file, or start from a checkpoint before it"
        ) from None
    with file:
        yield from _blocks(spooled, file, msgspec.msgpack.Decoder(form), count_of)


def _blocks(
    spooled: Spooled, file: BinaryIO, decoder: msgspec.msgpack.Decoder[Any], count_of: Callable[[Any], int]
) -> Iterator[Any]:
    if file.read(len(_HEAD)) != _HEAD:
        raise _damaged(spooled, "it does not begin as it must")
    count = 0
    while True:
        head = file.read(_BLOCK.size)
        if len(head) < _BLOCK.size:
            raise _damaged(spooled, "it is too short")
        length, checksum = _BLOCK.unpack(head)
        if length == 0:
            if checksum != count or count != spooled.messages:
                raise _damaged(spooled, f"it has {count} messages, not {spooled.messages}")
            return
        content = file.read(length)
        if len(content) != length or xxhash.xxh64_intdigest(content) != checksum:
            raise _damaged(spooled, f"the block behind message {count} is not what was written")
        batch = decoder.decode(content)
        count += count_of(batch)
        yield batch


def _damaged(spooled: Spooled, what: str) -> CheckpointError:
    where = spooled.name or "in the manifest"
    return CheckpointError(
        f"output file {where} of epoch {spooled.epoch} is damaged: {what}. Restore it, or start from an "
        "earlier checkpoint"
    )
