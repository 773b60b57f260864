"""The file in which one slot persists what it holds (full) or what one epoch changed (delta).

::

    magic "HWSNAP\\0\\0" | u32 format version | u32 header length | header (msgpack)
    section payloads, one after another, each as it is or zstd-compressed
    index (msgpack): uid, kind, name, key group, offset, stored length, raw length, codec, xxh64 of each section
    u64 index offset | u32 index length | u64 checksum of header and index | u64 file length | magic

The checksum in `SnapshotRef` covers header and index, and the index holds the checksum of every section. So a reader
that wants a few key groups reads the end of the file and those ranges, and has still checked every byte it uses.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import xxhash
import zstandard

from headwater.checkpoint.durable_file import replace_atomically
from headwater.checkpoint.paths import SnapshotKind
from headwater.common.errors import CheckpointError
from headwater.state.section import Section

FORMAT_VERSION: Final = 1
COMPRESS_FROM_BYTES: Final = 4096
"""Smaller sections are stored as they are: a delta of a few keys must not pay for a compressor."""

_MAGIC: Final = b"HWSNAP\0\0"
_HEAD: Final = struct.Struct("<8sII")
_FOOT: Final = struct.Struct("<QIQQ8s")
_RAW: Final = 0
_ZSTD: Final = 1


class SnapshotRef(msgspec.Struct, frozen=True, array_like=True):
    """What a manifest says about one snapshot file. New fields go to the end, with a default."""

    name: str
    length: int
    checksum: int
    epoch: int
    kind: SnapshotKind
    key_groups: tuple[int, int]
    """First key group of the slot, and the one after its last. (0, 0) for a slot without keyed state."""


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    """One section in the index."""

    uid: str
    kind: str
    name: str
    key_group: int
    offset: int
    stored_length: int
    raw_length: int
    codec: int
    checksum: int


def write_snapshot(
    path: Path, header: Mapping[str, Any], sections: Iterable[Section], *, durable: bool = True
) -> SnapshotRef:
    """Write `sections` to `path` and return what the manifest must say about the file.

    `header` needs `epoch` (int), `kind` ('delta' or 'full') and `key_groups` (a range or a pair); further plain values
    are kept for people and tools. Called by the slot, or by its forked child. Consumes `sections` once, in order, and
    holds one payload at a time. The file is at its name only when it is whole.
    """
    facts = dict(header)
    key_groups = facts["key_groups"]
    first, stop = (key_groups.start, key_groups.stop) if isinstance(key_groups, range) else map(int, key_groups)
    facts["key_groups"] = (first, stop)
    header_bytes = msgspec.msgpack.encode(facts)
    entries: list[_Entry] = []
    compressor: zstandard.ZstdCompressor | None = None
    with replace_atomically(path, durable=durable) as file:
        offset = file.write(_HEAD.pack(_MAGIC, FORMAT_VERSION, len(header_bytes)) + header_bytes)
        for section in sections:
            stored, codec = section.payload, _RAW
            raw_length = len(stored)
            if raw_length >= COMPRESS_FROM_BYTES:
                compressor = compressor or zstandard.ZstdCompressor(level=1)
                compressed = compressor.compress(stored)
                if len(compressed) < raw_length * 0.9:
                    stored, codec = compressed, _ZSTD
            file.write(stored)
            entries.append(
                _Entry(
                    section.uid,
                    section.kind,
                    section.name,
                    section.key_group,
                    offset,
                    len(stored),
                    raw_length,
                    codec,
                    xxhash.xxh64_intdigest(stored),
                )
            )
            offset += len(stored)
        index = msgspec.msgpack.encode(entries)
        checksum = _checksum(header_bytes, index)
        length = offset + len(index) + _FOOT.size
        file.write(index + _FOOT.pack(offset, len(index), checksum, length, _MAGIC))
    return SnapshotRef(path.name, length, checksum, facts["epoch"], facts["kind"], (first, stop))


def read_sections(
    path: Path, ref: SnapshotRef, key_groups: range | None = None, *, include_unkeyed: bool = True
) -> Iterator[Section]:
    """The sections of the file that `ref` names, in the order in which they were written.

    With `key_groups` only keyed sections of these groups are read (a partition of a rescaled job); sections without a
    key group (operator state) come along unless `include_unkeyed` is false. Raises CheckpointError, naming file and
    epoch, if anything is not exactly what was written. Nothing may be kept of what was yielded before such an error.
    """
    with _open(path, ref) as file:
        _, entries = _read_index(file, path, ref)
        decompressor = zstandard.ZstdDecompressor()
        for entry in entries:
            if not (include_unkeyed if entry.key_group < 0 else key_groups is None or entry.key_group in key_groups):
                continue
            if file.tell() != entry.offset:
                file.seek(entry.offset)
            stored = file.read(entry.stored_length)
            where = f"section {entry.uid}/{entry.kind}/{entry.name}, key group {entry.key_group}"
            if len(stored) != entry.stored_length or xxhash.xxh64_intdigest(stored) != entry.checksum:
                raise _damaged(path, ref.epoch, f"{where} does not have its checksum")
            if entry.codec == _ZSTD:
                try:
                    stored = decompressor.decompress(stored, max_output_size=entry.raw_length)
                except zstandard.ZstdError as error:
                    raise _damaged(path, ref.epoch, f"{where} cannot be decompressed: {error}") from error
            if len(stored) != entry.raw_length:
                raise _damaged(path, ref.epoch, f"{where} has {len(stored)} bytes instead of {entry.raw_length}")
            yield Section(entry.uid, entry.kind, entry.name, entry.key_group, stored)


def read_header(path: Path, ref: SnapshotRef) -> dict[str, Any]:
    """The header with which the file was written, checked as `read_sections` checks it."""
    with _open(path, ref) as file:
        header, _ = _read_index(file, path, ref)
    return header


def _open(path: Path, ref: SnapshotRef) -> BinaryIO:
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise CheckpointError(
            f"snapshot {path} of epoch {ref.epoch} is missing; its manifest names it, so it was deleted from outside. "
            "Restore the file from a copy"
        ) from None
    except OSError as error:
        raise CheckpointError(f"snapshot {path} of epoch {ref.epoch} cannot be opened: {error.strerror}") from error


def _read_index(file: BinaryIO, path: Path, ref: SnapshotRef) -> tuple[dict[str, Any], list[_Entry]]:
    length = file.seek(0, 2)
    if length != ref.length:
        raise _damaged(path, ref.epoch, f"it has {length:,} bytes, its manifest says {ref.length:,}")
    if length < _HEAD.size + _FOOT.size:
        raise _damaged(path, ref.epoch, f"{length} bytes are too short for a snapshot")
    file.seek(0)
    magic, version, header_length = _HEAD.unpack(file.read(_HEAD.size))
    if magic != _MAGIC:
        raise _damaged(path, ref.epoch, "it does not begin like a snapshot")
    if version != FORMAT_VERSION:
        raise CheckpointError(
            f"snapshot {path} of epoch {ref.epoch} has format version {version}; this headwater reads version "
            f"{FORMAT_VERSION}. Run it with the version that wrote it"
        )
    file.seek(length - _FOOT.size)
    index_offset, index_length, checksum, footer_length, end_magic = _FOOT.unpack(file.read(_FOOT.size))
    sizes_fit = index_offset + index_length + _FOOT.size == length and _HEAD.size + header_length <= index_offset
    if end_magic != _MAGIC or footer_length != length or not sizes_fit:
        raise _damaged(path, ref.epoch, "its last bytes are not those of a snapshot of this length")
    file.seek(_HEAD.size)
    header_bytes = file.read(header_length)
    file.seek(index_offset)
    index = file.read(index_length)
    actual = _checksum(header_bytes, index)
    if actual != checksum:
        raise _damaged(path, ref.epoch, "header and index do not have their checksum")
    if actual != ref.checksum:
        raise _damaged(path, ref.epoch, "it is not the file that its manifest names (the checksum is another one)")
    try:
        header = msgspec.msgpack.decode(header_bytes, type=dict[str, Any])
        return header, msgspec.msgpack.decode(index, type=list[_Entry])
    except msgspec.MsgspecError as error:
        raise _damaged(path, ref.epoch, f"header or index cannot be read: {error}") from error


def _checksum(header: bytes, index: bytes) -> int:
    digest = xxhash.xxh64(header)
    digest.update(index)
    return digest.intdigest()


def _damaged(path: Path, epoch: int, what: str) -> CheckpointError:
    return CheckpointError(f"snapshot {path} of epoch {epoch} is damaged: {what}. Restore the file from a copy")
