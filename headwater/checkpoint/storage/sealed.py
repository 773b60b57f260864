"""The envelope of small files: magic, format version, length and checksum around a payload.

::

    magic (8 bytes) | u32 format version | u64 payload length | payload | u64 xxh64 of the payload
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import xxhash

_HEAD: Final = struct.Struct("<8sIQ")
_CHECKSUM: Final = struct.Struct("<Q")


class BrokenSealError(ValueError):
    """The content is not what was sealed. `version` is set if the format version is not the expected one."""

    def __init__(self, reason: str, version: int | None = None) -> None:
        super().__init__(reason)
        self.version = version


def seal(magic: bytes, version: int, payload: bytes) -> bytes:
    """Return the content of a file from which `unseal` gets `payload` back."""
    head = _HEAD.pack(magic, version, len(payload))
    return head + payload + _CHECKSUM.pack(xxhash.xxh64_intdigest(payload))


def unseal(magic: bytes, versions: Sequence[int], content: bytes, noun: str) -> bytes:
    """The payload of a file with one of `versions`.

    Raises BrokenSealError, with a reason for people, if a single bit is another one.
    """
    if len(content) < _HEAD.size:
        raise BrokenSealError(f"{len(content)} bytes are too short for a {noun}")
    found_magic, found_version, length = _HEAD.unpack_from(content)
    if found_magic != magic:
        raise BrokenSealError(f"it does not begin like a {noun}")
    if found_version not in versions:
        raise BrokenSealError(f"it has format version {found_version} instead of {versions[-1]}", found_version)
    expected = _HEAD.size + length + _CHECKSUM.size
    if len(content) != expected:
        raise BrokenSealError(f"it has {len(content):,} bytes, its header says {expected:,}")
    payload = content[_HEAD.size : _HEAD.size + length]
    (checksum,) = _CHECKSUM.unpack_from(content, _HEAD.size + length)
    if xxhash.xxh64_intdigest(payload) != checksum:
        raise BrokenSealError("its content does not have its checksum")
    return payload
