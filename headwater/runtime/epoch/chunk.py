"""Frames: the messages between stages, to slots, and back to the driver.

A frame is ``[4-byte header length][header][payload]``. The header is a tuple of plain values, so that relays route a
frame without reading its payload. Frames exist only while an epoch runs and are never persisted. Both ends run the
same version of headwater and of Python; the slot's handshake checks that.
"""

from __future__ import annotations

import marshal
import pickle
import struct
from typing import Any, NamedTuple

_LENGTH = struct.Struct("<I")

TO_DRIVER = 1 << 20
"""The destination stage of acknowledgements and errors, larger than every real stage."""

EVERY = -1
"""The target of a frame for all partitions of its stage."""


class FrameKind:
    """What a frame means to its receiver. Plain ints: headers are marshalled."""

    DATA = 0
    END = 1  # the channel's last frame of the epoch: its final watermark, for every partition
    ACK = 2  # a partition's or split's acknowledgement, for the driver
    ERROR = 3  # the epoch cannot complete: for everyone downstream, and the driver
    HEADER = 4  # pickle(EpochHeader), cut down to what the partition that it is sent to needs


class Header(NamedTuple):
    """A frame's destination, and its place in its channel.

    A channel is one producer on one edge: a source split, or one partition of an operator. `seq` counts the frames of
    a channel within the epoch. `watermark` is the watermark before the records (DATA), or the channel's last one (END).
    """

    kind: int
    stage: int
    target: int
    edge: int
    channel: str
    seq: int
    watermark: int
    records: int = 0
    idle: bool = False
    ended: bool = False


def encode_frame(header: Header, payload: bytes = b"") -> bytes:
    """One frame as bytes."""
    head = marshal.dumps(tuple(header))
    return b"".join((_LENGTH.pack(len(head)), head, payload))


def decode_header(frame: bytes) -> Header:
    """Return the header. Does not read the payload."""
    (length,) = _LENGTH.unpack_from(frame)
    return Header(*marshal.loads(memoryview(frame)[4 : 4 + length]))


def payload_of(frame: bytes) -> memoryview:
    """Return the payload without copying it."""
    (length,) = _LENGTH.unpack_from(frame)
    return memoryview(frame)[4 + length :]


def encode_records(values: list[Any], timestamps: list[int | None] | None) -> bytes:
    """The payload of a DATA frame."""
    return pickle.dumps((values, timestamps), 5)


def decode_records(payload: memoryview | bytes) -> tuple[list[Any], list[int | None] | None]:
    """The records of a DATA frame."""
    values, timestamps = pickle.loads(payload)
    return values, timestamps
