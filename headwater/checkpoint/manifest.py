"""The coordinator's record that an epoch is complete, and its encoding.

A manifest names exactly the files and committables that count. What it does not name does not exist.

The file is one sealed msgpack map (sealed.py), magic "HWMANIF\\0".

Split payloads, positions, committables and the operator state of source chains are opaque bytes here: a manifest can be
read and checked without the job's classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from headwater.checkpoint.finished_splits import FinishedSplitsRecord
from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.checkpoint.storage.sealed import BrokenSealError, seal, unseal
from headwater.common.errors import CheckpointError
from headwater.common.ids import Place

FORMAT_VERSION: Final = 1
HOLDING_VERSION: Final = 2
"""Version of manifests that hold output back. An older headwater refuses them: it would lose that output."""

_MAGIC: Final = b"HWMANIF\0"


class PartitionRecord(msgspec.Struct, omit_defaults=True):
    """What one partition of one stage needs to resume: its snapshot chain and its event time."""

    stage: int
    partition: int
    snapshots: list[SnapshotRef] = []
    """The chain, oldest first: at most one full or native snapshot, then the deltas since."""
    watermarks: dict[str, int] = {}
    """{watermark key: where event time stands} (`time/watermark_keys.py`)"""
    next_processing_timer_ms: int | None = None

    @property
    def place(self) -> Place:
        return Place(self.stage, self.partition)


class SplitRecord(msgspec.Struct, omit_defaults=True):
    """How far one unfinished split of a source is read. The bytes are opaque pickles."""

    payload: bytes
    position: bytes | None = None
    """None: not read yet."""
    operator_state: bytes = b""
    """State of the operators chained to the source for this split: watermark generators, mostly."""
    finished: bool = False
    """Its last record was read in this epoch. Later manifests list the split in `finished_splits` only."""
    details: dict[str, int] = {}


class SourceRecord(msgspec.Struct, omit_defaults=True):
    """All splits of one source."""

    splits: dict[str, SplitRecord] = {}
    """{split id: how far it is read}: unfinished splits, and those that finished in this epoch."""
    finished_splits: FinishedSplitsRecord = FinishedSplitsRecord()
    exhausted: bool = False
    """The source is bounded and all its splits are finished."""
    details: dict[str, int] = {}
    """{watermark key: event time of the source as a whole}, for a source without splits."""


class HeldRecord(msgspec.Struct, omit_defaults=True):
    """Output of one sink that no checkpoint has made visible yet."""

    items: list[bytes]
    """Pickled committables."""
    again_ms: int | None = None
    """When the sink wants to be asked again, in processing time."""


class BaseRecord(msgspec.Struct, frozen=True):
    """The manifest from which a driver goes on."""

    epoch: int | None
    """None: there was no manifest."""
    claim: int
    """Under which that manifest was written."""


class WriterRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which driver wrote a manifest (claims.py)."""

    claim: int
    run: str
    host: str
    pid: int
    base: BaseRecord | None = None
    """From where it went on: what `claims/<claim>.base` says, in case that is lost. None: by an earlier version."""


class Manifest(msgspec.Struct, omit_defaults=True):
    """Epoch `epoch` of a job is complete. The driver writes it once; whoever resumes from it reads it."""

    job_id: str
    job_name: str
    epoch: int
    incarnation: int
    """Which start of the job wrote it: 1 for the first driver process, 2 for the next on the same directory, …"""
    created_ms: int
    now_ms: int
    """The epoch's processing time. The next epoch's must not be smaller."""
    plan_fingerprint: str
    max_parallelism: int
    operators: dict[str, str] = {}
    """{uid: name} of the operators whose state the snapshots hold."""
    partitions: list[PartitionRecord] = []
    sources: dict[str, SourceRecord] = {}
    """{source uid: its splits}"""
    committables: dict[str, list[bytes]] = {}
    """{sink uid: pickled committables of this epoch}"""
    held: dict[str, HeldRecord] = {}
    """{sink uid: output that a later checkpoint makes visible}"""
    counters: dict[str, int] = {}
    finished: bool = False
    """The job's input has ended and this is its last epoch."""
    spark: dict[str, Any] = {}
    """Plain values that tie the epoch to Structured Streaming: `batch_id`, the micro-batch of this epoch."""
    writer: WriterRecord | None = None
    """Set by the store. None: a tool or an earlier version wrote the manifest, without a claim."""

    @property
    def claim(self) -> int:
        """The number of its writer's claim; 0 without one."""
        return self.writer.claim if self.writer is not None else 0

    def partition(self, stage: int, partition: int) -> PartitionRecord | None:
        """Return the record of one partition; None if the partition has persisted nothing yet."""
        for record in self.partitions:
            if record.stage == stage and record.partition == partition:
                return record
        return None

    def sinks_with_output(self, committables: Mapping[str, list[bytes]]) -> set[str]:
        """Uids of the sinks that a job needs which goes on from here and commits `committables`."""
        return {uid for uid, items in committables.items() if items} | set(self.held)

    def snapshot_names(self) -> set[str]:
        """Names of all snapshot files that this manifest needs."""
        snapshots = [snapshot for record in self.partitions for snapshot in record.snapshots]
        return {snapshot.name for snapshot in snapshots} | {file.name for each in snapshots for file in each.files}

    def split_segment_names(self) -> set[str]:
        """Names of all finished-splits files that this manifest needs."""
        return {segment.name for source in self.sources.values() for segment in source.finished_splits.segments}


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Manifest)


def encode_manifest(manifest: Manifest) -> bytes:
    """The bytes of a manifest file."""
    return seal(_MAGIC, HOLDING_VERSION if manifest.held else FORMAT_VERSION, _encoder.encode(manifest))


def decode_manifest(content: bytes, file: str, epoch: int | None = None) -> Manifest:
    """The manifest in `content`. `file` and `epoch` say what was asked for (None: of any epoch).

    Anything else raises CheckpointError.
    """
    try:
        manifest = _decoder.decode(unseal(_MAGIC, (FORMAT_VERSION, HOLDING_VERSION), content, "manifest"))
    except BrokenSealError as error:
        if error.version is None:
            raise _damaged(file, epoch, str(error)) from None
        raise CheckpointError(
            f"{_what(file, epoch)} has format version {error.version}; this headwater reads versions "
            f"{FORMAT_VERSION} and {HOLDING_VERSION}. Run the job with the version that wrote it, or restore the file "
            "from a copy"
        ) from None
    except msgspec.MsgspecError as error:
        raise _damaged(file, epoch, f"its content cannot be read: {error}") from error
    if epoch is not None and manifest.epoch != epoch:
        raise _damaged(file, epoch, f"it is the manifest of epoch {manifest.epoch}")
    return manifest


def _damaged(file: str, epoch: int | None, what: str) -> CheckpointError:
    return CheckpointError(f"{_what(file, epoch)} is damaged: {what}. Restore the file from a copy")


def _what(file: str, epoch: int | None) -> str:
    return f"manifest {file}" + (f" of epoch {epoch}" if epoch is not None else "")
