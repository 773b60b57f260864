"""The file in which one slot persists its whole state (full) or what changed since the last checkpoint (delta).

::

    magic "HWSNAP\\0\\0" | u32 format version | u32 header length | header (msgpack)
    section payloads, one after another, each as it is or zstd-compressed
    index (msgpack): uid, kind, name, key group, offset, stored length, raw length, codec, xxh64 of each section
    u64 index offset | u32 index length | u64 checksum of header and index | u64 file length | magic

The checksum in `SnapshotRef` covers header and index, and the index holds the checksum of every section. So a reader
that needs a few key groups reads only the index and their sections, and still checks every byte that it uses.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO, Final, TypeVar

import msgspec
import xxhash
import zstandard

from headwater.checkpoint.paths import SnapshotKind
from headwater.checkpoint.storage.base import Location, stored
from headwater.common.errors import CheckpointError, DamagedSnapshotError
from headwater.state.snapshot.section import Section

log = logging.getLogger(__name__)

_T = TypeVar("_T")

FORMAT_VERSION: Final = 2
"""Version 1 had other columns in its sections."""
COMPRESS_FROM_BYTES: Final = 4096
"""Smaller sections are stored uncompressed: a delta of a few keys must not pay for a compressor."""

_MAGIC: Final = b"HWSNAP\0\0"
_HEAD: Final = struct.Struct("<8sII")
_FOOT: Final = struct.Struct("<QIQQ8s")
_RAW: Final = 0
_ZSTD: Final = 1


class NativeFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that a state backend made and that never changes. Several snapshots may share it."""

    name: str
    length: int
    checksum: int
    """xxh64 of its bytes."""


class SnapshotRef(msgspec.Struct, frozen=True, array_like=True):
    """What a manifest says about one snapshot file. New fields go to the end, with a default."""

    name: str
    length: int
    checksum: int
    epoch: int
    kind: SnapshotKind
    key_groups: tuple[int, int]
    """(start, stop) as the writer gave it in the header. Slots write (0, max parallelism)."""
    files: tuple[NativeFile, ...] = ()
    """Only of kind 'native': the files that belong to the snapshot, besides `name` (native.py)."""
    since: int | None = None
    """Only of a delta that takes the place of earlier ones: the epoch of the first of them."""

    @property
    def first_epoch(self) -> int:
        """The first epoch whose changes a delta has. It must follow the state before that, and no later one."""
        return self.epoch if self.since is None else self.since

    @property
    def total_bytes(self) -> int:
        """The size of all its files."""
        return self.length + sum(file.length for file in self.files)


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
    path: Location, header: Mapping[str, Any], sections: Iterable[Section], *, durable: bool = True
) -> SnapshotRef:
    """Write `sections` to `path` and return the reference that the manifest must contain.

    `header` needs `epoch` (int), `kind` (a `SnapshotKind`) and `key_groups` (a range or a pair), and `since` where the
    reference has it; it may have further plain values, for people and tools. Called by the slot, or by its forked
    child. Iterates over `sections` once and holds one payload at a time. The file at `path` counts when a manifest has
    the reference; a process that dies may leave a part of it. Raises CheckpointError for any OSError; other errors of
    `sections` pass through.
    """
    facts = dict(header)
    key_groups = facts["key_groups"]
    first, stop = (key_groups.start, key_groups.stop) if isinstance(key_groups, range) else map(int, key_groups)
    facts["key_groups"] = (first, stop)
    header_bytes = msgspec.msgpack.encode(facts)
    entries: list[_Entry] = []
    compressor: zstandard.ZstdCompressor | None = None
    target = stored(path)
    try:
        with target.storage.write(target.path, durable=durable, unnamed=True) as file:
            offset = file.write(_HEAD.pack(_MAGIC, FORMAT_VERSION, len(header_bytes)) + header_bytes)
            for section in sections:
                payload, codec = section.payload, _RAW
                raw_length = len(payload)
                if raw_length >= COMPRESS_FROM_BYTES:
                    compressor = compressor or zstandard.ZstdCompressor(level=1)
                    compressed = compressor.compress(payload)
                    if len(compressed) < raw_length * 0.9:
                        payload, codec = compressed, _ZSTD
                file.write(payload)
                entries.append(
                    _Entry(
                        section.uid,
                        section.kind,
                        section.name,
                        section.key_group,
                        offset,
                        len(payload),
                        raw_length,
                        codec,
                        xxhash.xxh64_intdigest(payload),
                    )
                )
                offset += len(payload)
            index = msgspec.msgpack.encode(entries)
            checksum = _checksum(header_bytes, index)
            length = offset + len(index) + _FOOT.size
            file.write(index + _FOOT.pack(offset, len(index), checksum, length, _MAGIC))
    except OSError as error:
        raise CheckpointError(
            f"snapshot {path} of epoch {facts['epoch']} cannot be written: {error.strerror or error}; make room, or "
            "make the directory writable. The checkpoint before it is as it was"
        ) from error
    return SnapshotRef(
        path.name, length, checksum, facts["epoch"], facts["kind"], (first, stop), since=facts.get("since")
    )


def read_sections(
    path: Location, ref: SnapshotRef, key_groups: range | None = None, *, include_unkeyed: bool = True
) -> Iterator[Section]:
    """Yield the sections of the file that `ref` names, in the order in which they were written.

    With `key_groups`, only the keyed sections of these groups (for a partition of a rescaled job). Sections without a
    key group (operator state) are included unless `include_unkeyed` is false. Raises CheckpointError, which names file
    and epoch, if the file is damaged; the caller must then discard all sections yielded before.

    Reads a local copy if there is one, and goes over to the storage at the first damage in the copy.
    """
    reader = _Reader(path, ref)
    decompressor = zstandard.ZstdDecompressor()
    try:
        _, entries = reader.index()
        for entry in entries:
            if include_unkeyed if entry.key_group < 0 else key_groups is None or entry.key_group in key_groups:
                yield reader.section(entry, decompressor)
    finally:
        reader.close()


def read_header(path: Location, ref: SnapshotRef) -> dict[str, Any]:
    """Return the file's header, after the same checks as in `read_sections`."""
    reader = _Reader(path, ref)
    try:
        return reader.index()[0]
    finally:
        reader.close()


class _Reader:
    """Reads one snapshot file: from a local copy until damage is found in it, then from the storage.

    It can change over at any section: `ref` has the checksum of the index, and the index has that of every section.
    """

    def __init__(self, path: Location, ref: SnapshotRef) -> None:
        self._path = path
        self._ref = ref
        target = stored(path)
        self._copy = target.storage.local_copy(target.path)
        self._file: BinaryIO | None = None

    def index(self) -> tuple[dict[str, Any], list[_Entry]]:
        return self._attempt(lambda file, path: _read_index(file, path, self._ref))

    def section(self, entry: _Entry, decompressor: zstandard.ZstdDecompressor) -> Section:
        return self._attempt(lambda file, path: _read_section(file, path, self._ref, entry, decompressor))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _attempt(self, read: Callable[[BinaryIO, Location], _T]) -> _T:
        if self._copy is not None:
            try:
                return self._read(read, self._copy)
            except CheckpointError as error:
                log.warning("%s; it is a local copy: reading %s instead", error, self._path)
                self._copy = None
                self.close()
        return self._read(read, self._path)

    def _read(self, read: Callable[[BinaryIO, Location], _T], path: Location) -> _T:
        if self._file is None:
            self._file = _open(path, self._ref)
        try:
            return read(self._file, path)
        except OSError as error:
            raise DamagedSnapshotError(
                f"snapshot {path} of epoch {self._ref.epoch} cannot be read: {error.strerror or error}", self._ref.name
            ) from error


def _open(path: Location, ref: SnapshotRef) -> BinaryIO:
    target = stored(path)
    try:
        return target.storage.open(target.path)
    except FileNotFoundError:
        raise DamagedSnapshotError(
            f"snapshot {path} of epoch {ref.epoch} is missing; its manifest names it, so it was deleted from outside. "
            "Restore the file from a copy",
            ref.name,
        ) from None
    except OSError as error:
        raise DamagedSnapshotError(
            f"snapshot {path} of epoch {ref.epoch} cannot be opened: {error.strerror}", ref.name
        ) from error


def _read_section(
    file: BinaryIO, path: Location, ref: SnapshotRef, entry: _Entry, decompressor: zstandard.ZstdDecompressor
) -> Section:
    if file.tell() != entry.offset:
        file.seek(entry.offset)
    payload = file.read(entry.stored_length)
    where = f"section {entry.uid}/{entry.kind}/{entry.name}, key group {entry.key_group}"
    if len(payload) != entry.stored_length or xxhash.xxh64_intdigest(payload) != entry.checksum:
        raise _damaged(path, ref, f"{where} does not have its checksum")
    if entry.codec == _ZSTD:
        try:
            payload = decompressor.decompress(payload, max_output_size=entry.raw_length)
        except zstandard.ZstdError as error:
            raise _damaged(path, ref, f"{where} cannot be decompressed: {error}") from error
    if len(payload) != entry.raw_length:
        raise _damaged(path, ref, f"{where} has {len(payload)} bytes instead of {entry.raw_length}")
    return Section(entry.uid, entry.kind, entry.name, entry.key_group, payload)


def _read_index(file: BinaryIO, path: Location, ref: SnapshotRef) -> tuple[dict[str, Any], list[_Entry]]:
    length = file.seek(0, 2)
    if length != ref.length:
        raise _damaged(path, ref, f"it has {length:,} bytes, its manifest says {ref.length:,}")
    if length < _HEAD.size + _FOOT.size:
        raise _damaged(path, ref, f"{length} bytes are too short for a snapshot")
    file.seek(0)
    magic, version, header_length = _HEAD.unpack(file.read(_HEAD.size))
    if magic != _MAGIC:
        raise _damaged(path, ref, "it does not begin like a snapshot")
    if 0 < version < FORMAT_VERSION:
        raise CheckpointError(
            f"snapshot {path} of epoch {ref.epoch} has format version {version}, which an older headwater wrote; this "
            f"one reads version {FORMAT_VERSION} and cannot convert it. Run the job with the headwater that wrote it, "
            "or start it without this state, in another checkpoint directory"
        )
    if version != FORMAT_VERSION:
        raise DamagedSnapshotError(  # its bytes may be damaged: a repair may find another file
            f"snapshot {path} of epoch {ref.epoch} has format version {version}; this headwater reads version "
            f"{FORMAT_VERSION}. Run it with the version that wrote it, or restore the file from a copy",
            ref.name,
        )
    file.seek(length - _FOOT.size)
    index_offset, index_length, checksum, footer_length, end_magic = _FOOT.unpack(file.read(_FOOT.size))
    sizes_fit = index_offset + index_length + _FOOT.size == length and _HEAD.size + header_length <= index_offset
    if end_magic != _MAGIC or footer_length != length or not sizes_fit:
        raise _damaged(path, ref, "its last bytes are not those of a snapshot of this length")
    file.seek(_HEAD.size)
    header_bytes = file.read(header_length)
    file.seek(index_offset)
    index = file.read(index_length)
    actual = _checksum(header_bytes, index)
    if actual != checksum:
        raise _damaged(path, ref, "header and index do not have their checksum")
    if actual != ref.checksum:
        raise _damaged(path, ref, "it is not the file that its manifest names (the checksum is another one)")
    try:
        header = msgspec.msgpack.decode(header_bytes, type=dict[str, Any])
        return header, msgspec.msgpack.decode(index, type=list[_Entry])
    except msgspec.MsgspecError as error:
        raise _damaged(path, ref, f"header or index cannot be read: {error}") from error


def _checksum(header: bytes, index: bytes) -> int:
    digest = xxhash.xxh64(header)
    digest.update(index)
    return digest.intdigest()


def _damaged(path: Location, ref: SnapshotRef, what: str) -> DamagedSnapshotError:
    return DamagedSnapshotError(
        f"snapshot {path} of epoch {ref.epoch} is damaged: {what}. Restore the file from a copy", ref.name
    )
