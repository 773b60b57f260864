"""Manifests on disk: written once each, read strictly, and the garbage that older ones leave.

This is the edge: it does I/O and no thinking. What to do with what it reads is decided in protocol.py.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable
from pathlib import Path

from headwater.checkpoint.durable_file import create_exclusively
from headwater.checkpoint.manifest import Manifest, decode_manifest, encode_manifest
from headwater.checkpoint.paths import TEMPORARY_SUFFIX, CheckpointLayout, epoch_of_file_name
from headwater.common.errors import CheckpointError


class ManifestStore:
    """The manifests of one checkpoint directory. Owned by the one driver that holds the directory lock."""

    def __init__(self, layout: CheckpointLayout, *, durable: bool = True) -> None:
        self.layout = layout
        self._durable = durable
        self._needed: dict[int, frozenset[str]] = {}  # {epoch: names of files its manifest needs}

    def write(self, manifest: Manifest) -> Path:
        """Make `manifest` the durable truth about its epoch.

        Raises CheckpointError ("fenced") if the epoch already has a manifest: somebody else completed it, and whatever
        this driver did in that epoch must not become visible.
        """
        path = self.layout.manifest(manifest.epoch)
        draft = f"{path.name}.{uuid.uuid4().hex}{TEMPORARY_SUFFIX}"
        try:
            create_exclusively(path, encode_manifest(manifest), draft, durable=self._durable)
        except FileExistsError:
            raise CheckpointError(
                f"fenced: epoch {manifest.epoch} already has the manifest {path}, written by another attempt of the "
                "job; this attempt stops, and commits nothing"
            ) from None
        except OSError as error:
            raise CheckpointError(
                f"manifest {path} of epoch {manifest.epoch} cannot be written: {error.strerror}; make room, or make "
                "the directory writable, and start the job again"
            ) from error
        self._needed[manifest.epoch] = _files_of(manifest)
        return path

    def note_committed(self, epoch: int) -> None:
        """Remember that the output of `epoch` is visible, so that a resumed job need not commit it again.

        Not durable, and need not be: where the note is lost the epoch is committed twice, which committers allow. It
        spares sinks without memory (print, collect) from repeating themselves after an orderly stop.
        """
        draft = self.layout.committed.with_name(self.layout.committed.name + TEMPORARY_SUFFIX)
        draft.write_text(str(epoch))
        os.replace(draft, self.layout.committed)

    def is_committed(self, epoch: int) -> bool:
        """Whether the output of `epoch` is known to be visible."""
        try:
            return int(self.layout.committed.read_text()) >= epoch
        except (FileNotFoundError, ValueError):
            return False

    def epochs(self) -> list[int]:
        """Epochs that have a manifest, oldest first."""
        try:
            names = os.listdir(self.layout.manifests)
        except FileNotFoundError:
            return []
        found = (self.layout.epoch_of_manifest(self.layout.manifests / name) for name in names)
        return sorted(epoch for epoch in found if epoch is not None)

    def latest(self) -> Manifest | None:
        """The manifest of the highest epoch; None in a fresh directory.

        If that one is damaged this raises: older ones are never tried, because the output of the newest epoch may be
        visible already.
        """
        epochs = self.epochs()
        return self.load(epochs[-1]) if epochs else None

    def load(self, epoch: int) -> Manifest:
        """The manifest of `epoch`; CheckpointError if it is missing or not exactly what was written."""
        path = self.layout.manifest(epoch)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            kept = self.epochs()
            there = f"epochs {kept[0]} to {kept[-1]} are kept" if kept else "there is none at all"
            raise CheckpointError(f"epoch {epoch} has no manifest at {path}; {there}") from None
        except OSError as error:
            raise CheckpointError(f"manifest {path} of epoch {epoch} cannot be read: {error.strerror}") from error
        manifest = decode_manifest(content, str(path), epoch)
        self._needed[epoch] = _files_of(manifest)
        return manifest

    def collect_garbage(self, keep: int, protected: Iterable[str] = ()) -> int:
        """Keep the newest `keep` manifests and the files they need; return how many files were deleted.

        Manifests go first: after a crash in between, files are left that no manifest names, and the next call finds
        them. Only files of epochs before the oldest kept one go: an attempt under way, or a full snapshot that a child
        still writes, is of a later epoch. `protected` are names to keep regardless.
        """
        if keep < 1:
            raise CheckpointError(f"execution.checkpointing.num-retained is {keep}; expected at least 1")
        epochs = self.epochs()
        if not epochs:
            return 0
        kept = epochs[-keep:]
        needed = self._needed_by(kept) | set(protected)
        deleted = 0
        for epoch in epochs[:-keep]:
            deleted += _unlink(self.layout.manifest(epoch))
            self._needed.pop(epoch, None)
        return deleted + self._delete_unneeded(needed, before_epoch=kept[0])

    def remove_orphans(self) -> int:
        """Delete every file that no manifest needs: left by attempts that died. Return how many.

        Only to be called at the start of a job, under the directory lock, before the first attempt.
        """
        deleted = self._delete_unneeded(self._needed_by(self.epochs()), before_epoch=None)
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self.layout.manifests):
                if name.endswith(TEMPORARY_SUFFIX):
                    deleted += _unlink(self.layout.manifests / name)
        return deleted

    def _needed_by(self, epochs: list[int]) -> set[str]:
        needed: set[str] = set()
        for epoch in epochs:
            if epoch not in self._needed:
                self.load(epoch)
            needed |= self._needed[epoch]
        return needed

    def _delete_unneeded(self, needed: set[str], before_epoch: int | None) -> int:
        deleted = 0
        for directory in (self.layout.snapshots, self.layout.splits):
            try:
                names = os.listdir(directory)
            except FileNotFoundError:
                continue
            for name in names:
                epoch = epoch_of_file_name(name)
                if name in needed or epoch is None:  # a foreign file is not ours to delete
                    continue
                if before_epoch is None or epoch < before_epoch:
                    deleted += _unlink(directory / name)
        return deleted


def _files_of(manifest: Manifest) -> frozenset[str]:
    return frozenset(manifest.snapshot_names() | manifest.split_segment_names())


def _unlink(path: Path) -> int:
    try:
        path.unlink()
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise CheckpointError(f"{path} is no longer needed but cannot be deleted: {error.strerror}") from error
    return 1
