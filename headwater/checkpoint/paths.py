"""Where things are in a checkpoint directory. This one type builds every path below it.

::

    <root>/LOCK                                          who runs the job (directory_lock.py)
    <root>/manifests/epoch-000000000012.manifest         epoch 12 is complete (store.py)
    <root>/snapshots/s1-p0-e000000000012-<attempt>.delta what partition 0 of stage 1 changed in epoch 12
    <root>/splits/<source>-e000000000012-<attempt>.ids   finished splits of a source (finished_splits.py)
    <root>/spark/                                        Spark's own offsets, for DataFrame sources

A file is written under its name plus `.tmp` and renamed: a name without it is a whole file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal

from headwater.common.errors import CheckpointError

SnapshotKind = Literal["delta", "full"]

TEMPORARY_SUFFIX: Final = ".tmp"

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.\-]*[A-Za-z0-9_\-])?")
_MAX_NAME = 100
_MAX_FILE_NAME = 200  # a name, and what the layout adds to it
_MANIFEST_NAME = re.compile(r"epoch-(\d{12})\.manifest")
_EPOCH_IN_FILE_NAME = re.compile(r"-e(\d{12})-")


def validate_name(name: str, what: str, max_length: int = _MAX_NAME) -> str:
    """Return `name` if it can safely be a part of a file name; otherwise raise.

    Names come from users (uids, attempt ids): nothing that could leave the directory or hide a file gets through.
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
    """All paths of one job's checkpoint directory. Makes paths only; `create` is the one method that touches disk."""

    def __init__(self, root: str | Path) -> None:
        text = str(root)
        if text.startswith("file://"):
            text = text.removeprefix("file://")
        elif re.match(r"[a-zA-Z][a-zA-Z0-9+.\-]+://", text):
            raise CheckpointError(
                f"checkpoint directory {text!r} is on another file system; expected a path that all hosts of the job "
                "mount, for example /mnt/checkpoints/my-job"
            )
        self.root = Path(text).expanduser().absolute()

    def create(self) -> None:
        """Make the directories. Does nothing where they exist."""
        try:
            for directory in (self.manifests, self.snapshots, self.splits):
                directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(
                f"checkpoint directory {self.root} cannot be made: {error.strerror}; choose another one with "
                "execution.checkpointing.dir, or make this one writable"
            ) from error

    @property
    def lock(self) -> Path:
        return self.root / "LOCK"

    @property
    def committed(self) -> Path:
        return self.root / "COMMITTED"

    @property
    def manifests(self) -> Path:
        return self.root / "manifests"

    @property
    def snapshots(self) -> Path:
        return self.root / "snapshots"

    @property
    def splits(self) -> Path:
        return self.root / "splits"

    @property
    def spark(self) -> Path:
        return self.root / "spark"

    def manifest(self, epoch: int) -> Path:
        return self.manifests / f"epoch-{_twelve_digits(epoch)}.manifest"

    def epoch_of_manifest(self, path: Path) -> int | None:
        """The epoch of a file in `manifests`; None for a temporary or foreign file."""
        match = _MANIFEST_NAME.fullmatch(path.name)
        return int(match[1]) if match else None

    def new_snapshot(self, stage: int, partition: int, epoch: int, attempt_id: str, kind: SnapshotKind) -> Path:
        """Where one partition writes its snapshot. `attempt_id` must be unique per attempt of an epoch."""
        if kind not in ("delta", "full"):
            raise CheckpointError(f"snapshot kind {kind!r} is unknown; expected 'delta' or 'full'")
        attempt = validate_name(attempt_id, "attempt id")
        return self.snapshots / f"s{int(stage)}-p{int(partition)}-e{_twelve_digits(epoch)}-{attempt}.{kind}"

    def snapshot(self, name: str) -> Path:
        """The file that a `SnapshotRef.name` of a manifest means."""
        return self.snapshots / validate_name(name, "snapshot name", _MAX_FILE_NAME)

    def new_split_segment(self, source_hash: str, epoch: int, attempt_id: str) -> Path:
        source, attempt = validate_name(source_hash, "source"), validate_name(attempt_id, "attempt id")
        return self.splits / f"{source}-e{_twelve_digits(epoch)}-{attempt}.ids"

    def split_segment(self, name: str) -> Path:
        return self.splits / validate_name(name, "split segment name", _MAX_FILE_NAME)


def temporary(path: Path) -> Path:
    """The name under which `path` is written before it is renamed."""
    return path.with_name(path.name + TEMPORARY_SUFFIX)


def _twelve_digits(epoch: int) -> str:
    if not 0 <= epoch < 10**12:
        raise CheckpointError(f"epoch {epoch} is out of range; expected 0 to 999,999,999,999")
    return f"{epoch:012d}"
