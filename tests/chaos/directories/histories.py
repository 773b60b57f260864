"""Checkpoint directories at several moments of a job's life, each made by a real job."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.start.directory_lock import DirectoryLock
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import FencedError
from headwater.testing import JobCrashed
from tests.chaos.directories.job import Run, Setting

History = Callable[[Path], Setting]
"""Makes a directory below the path, and says how the job is to be started on it."""


def _killed(setting: Setting, step: str, epoch: int) -> Setting:
    with pytest.raises(JobCrashed):
        Run(setting, (step, epoch)).live()
    return setting


def fresh(root: Path) -> Setting:
    return _killed(Setting(root), "begin", 0)


def mid_run(root: Path) -> Setting:
    return _killed(Setting(root), "begin", 8)


def manifest_written(root: Path) -> Setting:
    return _killed(Setting(root), "manifest-written", 6)


def sink_committed(root: Path) -> Setting:
    return _killed(Setting(root), "sink-committed", 6)


def first_manifest_written(root: Path) -> Setting:
    return _killed(Setting(root), "manifest-written", 0)


def several_restarts(root: Path) -> Setting:
    for step, epoch in (("begin", 0), ("begin", 3), ("sink-committed", 4), ("begin", 5)):
        _killed(Setting(root), step, epoch)
    return _killed(Setting(root), "manifest-written", 7)


def finished(root: Path) -> Setting:
    Run(Setting(root)).live()
    return Setting(root)


def rescaled(root: Path) -> Setting:
    _killed(Setting(root), "begin", 4)
    return _killed(Setting(root, parallelism=3), "begin", 6)


def native(root: Path) -> Setting:
    return _killed(Setting(root, backend="rocksdb"), "begin", 8)


def from_savepoint(root: Path) -> Setting:
    """Killed before its first own checkpoint."""
    savepoint = root / "savepoint"
    with pytest.raises(JobCrashed):
        Run(Setting(root), ("begin", 7), savepoint_at=4).live()
    shutil.rmtree(root / "checkpoints")
    _drop_output_after(root, savepoint)
    return _killed(Setting(root, savepoint=str(savepoint)), "begin", _epoch_of(savepoint) + 1)


def from_savepoint_and_on(root: Path) -> Setting:
    setting = from_savepoint(root)
    epoch = _epoch_of(root / "savepoint")
    return _killed(setting, "begin", epoch + 4)


def forked(root: Path) -> Setting:
    """From the checkpoint of a job that ran, whose directory has gone since."""
    mid_run(root)
    other = root / "other"
    (root / "checkpoints").rename(other)
    with DirectoryLock(CheckpointLayout(other), "other"):
        setting = _killed(Setting(root, savepoint=str(other)), "begin", _epoch_of(other) + 1)
    shutil.rmtree(other)
    return setting


def fenced(root: Path) -> Setting:
    """A driver that was replaced has written one more manifest."""
    run = Run(Setting(root), ("begin", 4))
    with pytest.raises(JobCrashed):
        run.live()
    store = run.start.store
    assert store is not None
    latest = store.latest()
    assert latest is not None
    _killed(Setting(root), "begin", 4)
    with pytest.raises(FencedError):
        _write_unlooked(store, msgspec.structs.replace(latest, epoch=latest.epoch + 1))
    return Setting(root)


def _write_unlooked(store: ManifestStore, manifest: Manifest) -> None:
    """As if it had looked just before the other driver came."""
    claim = store._claim
    assert claim is not None
    looks = iter([lambda: 0])
    with pytest.MonkeyPatch.context() as patch:
        look = claim.check
        patch.setattr(claim, "check", lambda: next(looks, look)())
        store.write(manifest)


def _epoch_of(directory: Path) -> int:
    return ManifestStore(CheckpointLayout(directory)).epochs()[-1]


def _drop_output_after(root: Path, savepoint: Path) -> None:
    """What the job gave after the savepoint, another one gives now."""
    for part in (root / "out").glob("*.part"):
        if int(part.name.partition("-")[0]) > _epoch_of(savepoint):
            part.unlink()


HISTORIES: tuple[History, ...] = (
    fresh, mid_run, manifest_written, sink_committed, first_manifest_written, several_restarts, finished, rescaled,
    native, from_savepoint, from_savepoint_and_on, forked, fenced,
)  # fmt: skip


def moved(setting: Setting, root: Path) -> Setting:
    """The same job, in a copy of its directory."""
    return replace(setting, root=root)
