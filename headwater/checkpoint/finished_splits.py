"""Which splits of a source are finished, stored so that a manifest does not grow with the age of the job.

A directory watched for a year has a million finished files; a manifest per second cannot list them all. So new ids
first go into the manifest itself (`recent`). When they are many, they move into a segment file, and manifests only name
that file. A segment less than twice as large as the one after it is merged with it: for n ids there are about log(n)
segments, and each id is rewritten about log(n) times.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

import msgspec
import xxhash
import zstandard

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.storage.base import stored
from headwater.common.errors import CheckpointError

RECENT_LIMIT: Final = 256
"""The most ids that the manifest itself contains."""

_MAGIC: Final = b"HWSPLIT\x01"
_HEAD: Final = struct.Struct("<8sQQ")  # magic, raw length, xxh64 of what follows


class SplitSegmentRef(msgspec.Struct, frozen=True, array_like=True):
    """One file of finished split ids."""

    name: str
    length: int
    checksum: int
    epoch: int
    count: int


class FinishedSplitsRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a manifest says about the finished splits of one source."""

    segments: tuple[SplitSegmentRef, ...] = ()
    recent: tuple[str, ...] = ()


class FinishedSplits:
    """The finished splits of one source, in the driver. Not thread-safe; owned by the coordinator.

    Ids added in an epoch count once a manifest with that epoch's `record()` is durable.
    """

    def __init__(self, layout: CheckpointLayout, source_uid: str, *, durable: bool = True) -> None:
        self._layout = layout
        self._source_hash = f"src{xxhash.xxh64_hexdigest(source_uid.encode())}"
        self._durable = durable
        self._ids: set[str] = set()
        self._record = FinishedSplitsRecord()
        self._frozen: frozenset[str] | None = frozenset()

    @classmethod
    def restore(
        cls, layout: CheckpointLayout, source_uid: str, record: FinishedSplitsRecord, *, durable: bool = True
    ) -> FinishedSplits:
        """Read the ids that `record` names. Raises CheckpointError if a segment is missing or damaged."""
        splits = cls(layout, source_uid, durable=durable)
        splits._record = record
        splits._ids.update(record.recent)
        for segment in record.segments:
            splits._ids.update(_read_segment(layout, segment))
        splits._frozen = None
        return splits

    def __contains__(self, split_id: str) -> bool:
        return split_id in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def ids(self) -> frozenset[str]:
        """All finished ids. Cheap when nothing was added since the last call."""
        if self._frozen is None:
            self._frozen = frozenset(self._ids)
        return self._frozen

    def add(self, split_ids: Iterable[str], epoch: int, attempt_id: str) -> FinishedSplitsRecord:
        """Add splits that finished in `epoch` and return the record for its manifest. May write a segment file.

        Call it only when the epoch is accepted: ids cannot be removed. If it raises (the disk is full, say), nothing
        was added and the caller may try again.
        """
        new = [split_id for split_id in dict.fromkeys(split_ids) if split_id not in self._ids]
        if not new:
            return self._record
        recent = self._record.recent + tuple(new)
        segments = list(self._record.segments)
        if len(recent) > RECENT_LIMIT:
            moved: list[str] = list(recent)
            while segments and segments[-1].count < 2 * len(moved):
                moved = _read_segment(self._layout, segments.pop()) + moved
            segments.append(self._write_segment(moved, epoch, attempt_id))
            recent = ()
        self._ids.update(new)
        self._frozen = None
        self._record = FinishedSplitsRecord(tuple(segments), recent)
        return self._record

    def record(self) -> FinishedSplitsRecord:
        return self._record

    def _write_segment(self, ids: list[str], epoch: int, attempt_id: str) -> SplitSegmentRef:
        path = self._layout.new_split_segment(self._source_hash, epoch, attempt_id)
        raw = msgspec.msgpack.encode(ids)
        compressed = zstandard.ZstdCompressor(level=1).compress(raw)
        checksum = xxhash.xxh64_intdigest(compressed)
        target = stored(path)
        try:
            with target.storage.write(target.path, durable=self._durable) as file:
                file.write(_HEAD.pack(_MAGIC, len(raw), checksum) + compressed)
        except OSError as error:
            raise CheckpointError(
                f"finished-splits file {path} of epoch {epoch} cannot be written: {error.strerror or error}; make "
                "room, or make the directory writable"
            ) from error
        return SplitSegmentRef(path.name, _HEAD.size + len(compressed), checksum, epoch, len(ids))


def _read_segment(layout: CheckpointLayout, ref: SplitSegmentRef) -> list[str]:
    path = layout.split_segment(ref.name)
    what = f"finished-splits file {path} of epoch {ref.epoch}"
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = error.strerror or error
        raise CheckpointError(f"{what} cannot be read: {reason}. Restore the file from a copy") from error
    if len(content) != ref.length or len(content) < _HEAD.size:
        raise CheckpointError(
            f"{what} is damaged: it has {len(content):,} bytes, its manifest says {ref.length:,}. "
            "Restore the file from a copy"
        )
    magic, raw_length, checksum = _HEAD.unpack_from(content)
    compressed = content[_HEAD.size :]
    if magic != _MAGIC or not checksum == ref.checksum == xxhash.xxh64_intdigest(compressed):
        raise CheckpointError(f"{what} is damaged: it does not have its checksum. Restore the file from a copy")
    try:
        raw = zstandard.ZstdDecompressor().decompress(compressed, max_output_size=raw_length)
        if len(raw) != raw_length:
            raise CheckpointError(f"{what} is damaged: its header is. Restore the file from a copy")
        return msgspec.msgpack.decode(raw, type=list[str])
    except (zstandard.ZstdError, msgspec.MsgspecError) as error:
        raise CheckpointError(f"{what} is damaged: {error}. Restore the file from a copy") from error
