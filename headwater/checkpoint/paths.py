"""Where things are in a checkpoint directory. This one type builds every path below it.

::

    <root>/LOCK                                          who runs the job (directory_lock.py)
    <root>/manifests/epoch-000000000012.manifest         epoch 12 is complete (store.py)
    <root>/snapshots/s1-p0-e000000000012-<attempt>.delta what partition 0 of stage 1 changed in epoch 12
    <root>/snapshots/s1-p0-e000000000012-<attempt>.0-000017.sst   a file of RocksDB (snapshot/native.py)
    <root>/splits/<source>-e000000000012-<attempt>.ids   finished splits of a source (finished_splits.py)
    <root>/output/<sink>-<name>                          a sink's output that waits for its commit (output_files.py)
    <root>/claims/000000000002.claim, .base              who runs the job since when, from where (claims.py)
    <root>/unfinished/<random>.savepoint                 where a savepoint is being written (savepoint/unfinished.py)
    <root>/NEWEST                                        the newest manifest once more (store.py)
    <root>/COMMITTED                                     up to which epoch the output is visible (store.py)
    <root>/JOB                                           the job's id (job_identity.py)
    <root>/spark/                                        Spark's own offsets, for DataFrame sources

On a local disk a file is written under its name plus `.tmp` and then renamed: a file without `.tmp` is whole.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal, get_args

from headwater.checkpoint.storage.base import CheckpointStorage, Location, StorageSpec, open_storage
from headwater.checkpoint.storage.durable_file import TEMPORARY_SUFFIX as TEMPORARY_SUFFIX
from headwater.checkpoint.storage.durable_file import temporary as temporary
from headwater.checkpoint.storage.local import LocalStorage
from headwater.common.errors import CheckpointError

SnapshotKind = Literal["delta", "full", "native"]

MANIFESTS: Final = "manifests"
SNAPSHOTS: Final = "snapshots"
SPLITS: Final = "splits"
CLAIMS: Final = "claims"
OUTPUT: Final = "output"
COMMITTED: Final = "COMMITTED"
NEWEST: Final = "NEWEST"

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.\-]*[A-Za-z0-9_\-])?")
_MAX_NAME = 100
_MAX_FILE_NAME = 200  # a validated name, and what the layout adds to it
_MANIFEST_NAME = re.compile(r"epoch-(\d{12})\.manifest")
_EPOCH_IN_FILE_NAME = re.compile(r"-e(\d{12})-")


def validate_name(name: str, what: str, max_length: int = _MAX_NAME) -> str:
    """Return `name` if it can safely be part of a file name; otherwise raise CheckpointError.

    Names come from users (uids, attempt ids): none may leave the directory or hide a file.
    """
    if not isinstance(name, str) or len(name) > max_length or not _NAME.fullmatch(name) or ".." in name:
        raise CheckpointError(
            f"{what} {name!r} cannot be part of a file name; expected up to {max_length} letters, digits, '_', '-' or "
            "'.', beginning with a letter or digit, not ending with '.', and without '..'"
        )
    return name


def epoch_of_file_name(name: str) -> int | None:
    """The epoch in the name of a snapshot or finished-splits file (also while temporary); None for other files."""
    match = _EPOCH_IN_FILE_NAME.search(name)
    return int(match[1]) if match else None


class CheckpointLayout:
    """The paths of all files in one job's checkpoint directory, and the storage that holds it.

    Only `create` touches the storage. A location is a Path in a local directory, otherwise a StoredFile. Picklable:
    slots on other machines get the layout with the job.
    """

    def __init__(self, root: str | Path | StorageSpec | CheckpointStorage) -> None:
        self.storage: CheckpointStorage = open_storage(root) if isinstance(root, str | Path | StorageSpec) else root

    def __repr__(self) -> str:
        return f"CheckpointLayout({self.storage.url!r})"

    @property
    def root(self) -> Location:
        return self.storage.root

    @property
    def is_local(self) -> bool:
        return isinstance(self.storage, LocalStorage)

    def create(self) -> None:
        """Make the directories that do not exist yet."""
        try:
            self.storage.create((MANIFESTS, SNAPSHOTS, SPLITS, CLAIMS))
        except OSError as error:
            raise CheckpointError(
                f"checkpoint directory {self.root} cannot be made: {error.strerror}; choose another one with "
                "execution.checkpointing.dir, or make this one writable"
            ) from error

    def _local(self, name: str, what: str) -> Path:
        path = self.storage.locate(name)
        if not isinstance(path, Path):
            raise CheckpointError(
                f"checkpoint directory {self.root} is not a path; {what} needs one that all hosts of the job mount, "
                "for example /mnt/checkpoints/my-job"
            )
        return path

    @property
    def lock(self) -> Path:
        return self._local("LOCK", "the lock of a directory")

    @property
    def spark(self) -> Path:
        return self._local("spark", "a streaming DataFrame, whose offsets Spark keeps in files of its own,")

    @property
    def committed(self) -> Location:
        return self.storage.locate(COMMITTED)

    @property
    def manifests(self) -> Location:
        return self.storage.locate(MANIFESTS)

    @property
    def snapshots(self) -> Location:
        return self.storage.locate(SNAPSHOTS)

    @property
    def splits(self) -> Location:
        return self.storage.locate(SPLITS)

    def manifest(self, epoch: int) -> Location:
        return self.storage.locate(manifest_name(epoch))

    def new_snapshot(self, stage: int, partition: int, epoch: int, attempt_id: str, kind: SnapshotKind) -> Location:
        """Return where one partition writes its snapshot. `attempt_id` must be unique per attempt of an epoch."""
        if kind not in get_args(SnapshotKind):
            raise CheckpointError(f"snapshot kind {kind!r} is unknown; expected 'delta', 'full' or 'native'")
        attempt = validate_name(attempt_id, "attempt id")
        name = f"s{int(stage)}-p{int(partition)}-e{_twelve_digits(epoch)}-{attempt}.{kind}"
        return self.storage.locate(f"{SNAPSHOTS}/{name}")

    def snapshot(self, name: str) -> Location:
        """Return the location of the file that a manifest names with `SnapshotRef.name`."""
        return self.storage.locate(f"{SNAPSHOTS}/{validate_name(name, 'snapshot name', _MAX_FILE_NAME)}")

    def new_split_segment(self, source_hash: str, epoch: int, attempt_id: str) -> Location:
        source, attempt = validate_name(source_hash, "source"), validate_name(attempt_id, "attempt id")
        return self.storage.locate(f"{SPLITS}/{source}-e{_twelve_digits(epoch)}-{attempt}.ids")

    def split_segment(self, name: str) -> Location:
        return self.storage.locate(f"{SPLITS}/{validate_name(name, 'split segment name', _MAX_FILE_NAME)}")


def manifest_name(epoch: int) -> str:
    """The manifest of `epoch`, relative to the directory."""
    return f"{MANIFESTS}/epoch-{_twelve_digits(epoch)}.manifest"


def epoch_of_manifest_name(name: str) -> int | None:
    """The epoch of a name in `manifests`; None for a temporary or foreign file."""
    match = _MANIFEST_NAME.fullmatch(name)
    return int(match[1]) if match else None


def _twelve_digits(epoch: int) -> str:
    if not 0 <= epoch < 10**12:
        raise CheckpointError(f"epoch {epoch} is out of range; expected 0 to 999,999,999,999")
    return f"{epoch:012d}"
