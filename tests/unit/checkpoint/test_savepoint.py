"""Savepoints: whole or not there, independent of their job, movable, and never deleted by mistake."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import msgspec
import pytest

from headwater.checkpoint.finished_splits import FinishedSplits
from headwater.checkpoint.manifest import SourceRecord
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.restore.rescale import plan_restore
from headwater.checkpoint.savepoint import savepoint as module
from headwater.checkpoint.savepoint.savepoint import (
    dispose_savepoint,
    left_of_deletion,
    open_savepoint,
    savepoint_info,
    write_savepoint,
)
from headwater.checkpoint.storage.fsspec import FsspecStorage
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError
from tests.unit.checkpoint.old_job import VALUE, OldJob, restored

SPLITS = [f"file-{number}" for number in range(600)]


@pytest.fixture
def job(tmp_path: Path) -> OldJob:
    """Two partitions, three epochs, a source with many finished splits, output in the last epoch."""
    job = OldJob(tmp_path / "job", ["count"], 2)
    finished = FinishedSplits(job.layout, "src", durable=False)
    finished.add(SPLITS, 0, "a0")
    sources = {"src": SourceRecord(finished_splits=finished.record())}

    def change(job: OldJob) -> None:
        for key in range(50):
            job.of_key("count", key).get_state(VALUE).update((key, job.epoch))

    for _ in range(3):
        job.run_epoch(change, sources=sources, committables={"out": [b"file"]})
    return job


def values_from(path: Path, parallelism: int = 3) -> dict[Any, Any]:
    opened = open_savepoint(path)
    shapes = OldJob(path.parent / "shape", ["count"], parallelism).shape(parallelism)
    plan = plan_restore(opened.manifest, shapes, str(opened.layout.root))
    found: dict[Any, Any] = {}
    for index in range(parallelism):
        found |= restored(plan[1, index], "count", 16, parallelism).values()
    return found


def write(job: OldJob, target: str | Path, **options: Any) -> module.SavepointInfo:
    return write_savepoint(job.layout, job.manifest, target, durable=False, **options)


def test_it_outlives_its_job_and_can_be_moved(job: OldJob, tmp_path: Path) -> None:
    info = write_savepoint(job.layout, job.manifest, tmp_path / "sp" / "one")
    assert (info.job_name, info.epoch, info.files) == ("old", 2, 7)
    shutil.rmtree(job.layout.root)
    shutil.copytree(tmp_path / "sp" / "one", tmp_path / "copy")
    dispose_savepoint(tmp_path / "sp" / "one")
    assert values_from(tmp_path / "copy") == {key: (key, 2) for key in range(50)}
    opened = open_savepoint(tmp_path / "copy")
    assert opened.is_savepoint and opened.path == str(tmp_path / "copy")
    record = opened.manifest.sources["src"].finished_splits
    assert FinishedSplits.restore(opened.layout, "src", record).ids() == set(SPLITS)


def test_files_are_copied_and_not_linked(job: OldJob, tmp_path: Path) -> None:
    write(job, tmp_path / "sp")
    name = job.manifest.partitions[0].snapshots[0].name
    mine, theirs = CheckpointLayout(tmp_path / "sp").snapshot(name), job.layout.snapshot(name)
    assert mine.read_bytes() == theirs.read_bytes()
    assert mine.stat().st_ino != theirs.stat().st_ino


def test_output_that_is_visible_is_left_out(job: OldJob, tmp_path: Path) -> None:
    write(job, tmp_path / "visible")
    write(job, tmp_path / "not-yet", output_committed=False)
    assert open_savepoint(tmp_path / "visible").manifest.committables == {}
    assert open_savepoint(tmp_path / "visible").output_committed
    assert open_savepoint(tmp_path / "not-yet").manifest.committables == {"out": [b"file"]}
    assert not open_savepoint(tmp_path / "not-yet").output_committed


def test_a_job_that_starts_from_it_gets_its_own_copy_of_what_sources_remember(job: OldJob, tmp_path: Path) -> None:
    write(job, tmp_path / "sp")
    own = CheckpointLayout(tmp_path / "fork")
    opened = open_savepoint(tmp_path / "sp")
    for _ in range(2):  # a job that crashed right after it does it again
        opened.copy_source_files(own, durable=False)
    dispose_savepoint(tmp_path / "sp")
    record = opened.manifest.sources["src"].finished_splits
    assert FinishedSplits.restore(own, "src", record).ids() == set(SPLITS)


# --- what can be opened


def test_the_newest_checkpoint_of_a_job_and_older_ones_can_be_opened(job: OldJob) -> None:
    root = job.layout.root
    assert open_savepoint(root).manifest.epoch == 2
    assert open_savepoint(f"file://{root}").manifest.epoch == 2
    assert open_savepoint(f"{root}@1").manifest.epoch == 1
    by_file = open_savepoint(job.layout.manifest(0))
    assert (by_file.manifest.epoch, by_file.is_savepoint, by_file.path) == (0, False, str(job.layout.manifest(0)))


def test_the_manifest_within_a_savepoint_means_the_savepoint(job: OldJob, tmp_path: Path) -> None:
    write(job, tmp_path / "sp")
    opened = open_savepoint(CheckpointLayout(tmp_path / "sp").manifest(2))
    assert opened.is_savepoint and opened.path == str(tmp_path / "sp")


def test_whether_output_is_visible_is_read_from_the_job(job: OldJob) -> None:
    ManifestStore(job.layout).note_committed(1)
    assert open_savepoint(f"{job.layout.root}@1").output_committed
    assert not open_savepoint(f"{job.layout.root}@2").output_committed


def test_what_is_not_there_is_named(job: OldJob, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nowhere does not exist; expected a savepoint's directory"):
        open_savepoint(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"epoch 9 has no manifest at .*; epochs 0 to 2 are kept"):
        open_savepoint(f"{job.layout.root}@9")
    with pytest.raises(CheckpointError, match="has neither SAVEPOINT nor a manifest"):
        open_savepoint(tmp_path)
    stray = tmp_path / "stray.txt"
    stray.write_text("x")
    with pytest.raises(CheckpointError, match=r"stray.txt is a file, but no manifest"):
        open_savepoint(stray)


def test_a_savepoint_of_another_format_or_damaged_is_refused(job: OldJob, tmp_path: Path) -> None:
    write(job, tmp_path / "sp")
    marker = tmp_path / "sp" / "SAVEPOINT"
    content = marker.read_text()
    for version in (1, 9):
        marker.write_text(content.replace('"format_version": 2', f'"format_version": {version}'))
        expected = f"has format version {version}; this headwater reads version 2 .*with the headwater that wrote it"
        with pytest.raises(CheckpointError, match=expected):
            open_savepoint(tmp_path / "sp")
    marker.write_text("{")
    with pytest.raises(CheckpointError, match="SAVEPOINT cannot be read"):
        savepoint_info(tmp_path / "sp")


# --- whole or not there


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("harm", [Path.unlink, damage], ids=["missing", "damaged"])
@pytest.mark.parametrize("kind", ["snapshots", "splits"])
def test_a_checkpoint_that_is_not_whole_makes_no_savepoint(job: OldJob, tmp_path: Path, harm: Any, kind: str) -> None:
    victim = sorted((job.layout.root / kind).iterdir())[0]
    harm(victim)
    target = tmp_path / "sps" / "sp"
    with pytest.raises(CheckpointError, match=str(victim)):
        write(job, target)
    assert list(target.parent.iterdir()) == []


def test_nothing_is_left_when_the_disk_is_full(job: OldJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.shutil, "copyfileobj", full)
    with pytest.raises(CheckpointError, match=r"sp cannot be written: No space left on device; make room"):
        write(job, tmp_path / "sps" / "sp")
    assert list((tmp_path / "sps").iterdir()) == []


def test_nothing_is_written_over(job: OldJob, tmp_path: Path) -> None:
    target = tmp_path / "sp"
    target.mkdir()
    write(job, target)  # an empty directory is nothing
    with pytest.raises(CheckpointError, match="sp exists; a savepoint is never written over something"):
        write(job, target)
    (tmp_path / "file").write_text("x")
    with pytest.raises(CheckpointError, match="file exists"):
        write(job, tmp_path / "file")


def test_of_two_writers_one_wins(job: OldJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "sp"
    rename = os.rename

    def late(source: Any, destination: Any) -> None:
        if not target.exists():
            monkeypatch.setattr(module.os, "rename", rename)
            write(job, target)
        rename(source, destination)

    monkeypatch.setattr(module.os, "rename", late)
    with pytest.raises(CheckpointError, match="exists"):
        write(job, target)
    assert open_savepoint(target).manifest.epoch == 2
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_a_place_that_cannot_be_is_named(job: OldJob, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CheckpointError, match=r"file/sp cannot be written: Not a directory; make room, or choose"):
        write(job, tmp_path / "file" / "sp")


# --- in an object store


@pytest.fixture
def store() -> Iterator[str]:
    """A URL whose files are in this process's memory."""
    url = "memory://savepoints"
    yield url
    fsspec.filesystem("memory").store.clear()


def test_a_savepoint_in_an_object_store_is_like_any_other(job: OldJob, store: str) -> None:
    info = write_savepoint(job.layout, job.manifest, f"{store}/one")
    assert info.path == f"{store}/one" and savepoint_info(f"{store}/one").files == 7
    shutil.rmtree(str(job.layout.root))
    opened = open_savepoint(f"{store}/one")
    assert opened.is_savepoint and opened.manifest.epoch == 2
    plan = plan_restore(opened.manifest, job.shape(3), opened.directory)
    found: dict[Any, Any] = {}
    for index in range(3):
        found |= restored(plan[1, index], "count", 16, 3).values()
    assert found == {key: (key, 2) for key in range(50)}
    own = CheckpointLayout(f"{store}/fork")
    opened.copy_source_files(own)
    dispose_savepoint(f"{store}/one")
    with pytest.raises(CheckpointError, match="has neither SAVEPOINT nor a manifest"):
        open_savepoint(f"{store}/one")
    record = opened.manifest.sources["src"].finished_splits
    assert FinishedSplits.restore(own, "src", record).ids() == set(SPLITS)


def test_an_older_checkpoint_in_an_object_store(job: OldJob, store: str) -> None:
    fsspec.filesystem("memory").put(str(job.layout.root), "/savepoints/job", recursive=True)
    assert open_savepoint(f"{store}/job").manifest.epoch == 2
    assert open_savepoint(f"{store}/job@1").manifest.epoch == 1
    opened = open_savepoint(f"{store}/job/manifests/epoch-000000000000.manifest")
    assert (opened.manifest.epoch, opened.is_savepoint) == (0, False)
    with pytest.raises(CheckpointError, match="is a checkpoint directory; only a savepoint"):
        dispose_savepoint(f"{store}/job")


def test_nothing_is_left_in_an_object_store_when_a_file_is_missing(job: OldJob, store: str) -> None:
    job.layout.snapshot(job.manifest.partitions[1].snapshots[2].name).unlink()  # type: ignore[union-attr]
    with pytest.raises(CheckpointError, match="is missing, but the checkpoint names it"):
        write_savepoint(job.layout, job.manifest, f"{store}/one")
    assert not [name for name in fsspec.filesystem("memory").store if "one" in name]
    write_savepoint(job.layout, ManifestStore(job.layout).load(1), f"{store}/one")
    with pytest.raises(CheckpointError, match="one exists; a savepoint is never written over something"):
        write_savepoint(job.layout, job.manifest, f"{store}/one")


# --- disposing


def test_only_savepoints_are_disposed_of(job: OldJob, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is a checkpoint directory; only a savepoint"):
        dispose_savepoint(job.layout.root)
    with pytest.raises(CheckpointError, match="is not there"):
        dispose_savepoint(tmp_path / "nowhere")
    (tmp_path / "precious").mkdir()
    with pytest.raises(CheckpointError, match="is no savepoint"):
        dispose_savepoint(tmp_path / "precious")
    write(job, tmp_path / "sp")
    (tmp_path / "sp" / "LOCK").write_text("")
    with pytest.raises(CheckpointError, match="in use as a job's checkpoint directory"):
        dispose_savepoint(tmp_path / "sp")
    assert open_savepoint(tmp_path / "sp") and open_savepoint(job.layout.root)


def test_a_damaged_savepoint_can_be_disposed_of(job: OldJob, tmp_path: Path) -> None:
    write(job, tmp_path / "sp")
    damage(CheckpointLayout(tmp_path / "sp").manifest(2))
    with pytest.raises(CheckpointError, match="damaged"):
        open_savepoint(tmp_path / "sp")
    dispose_savepoint(tmp_path / "sp")
    assert not (tmp_path / "sp").exists() and list(tmp_path.glob(".*")) == []


class Interrupted(BaseException):
    """The process ends here."""


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let the next deletion end after so many files."""

    def interrupt(files: int) -> None:
        left = files

        def counted(delete: Callable[..., Any]) -> Callable[..., Any]:
            def deleted(*arguments: Any, **keywords: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    monkeypatch.undo()
                    raise Interrupted
                return delete(*arguments, **keywords)

            return deleted

        monkeypatch.setattr(os, "unlink", counted(os.unlink))
        monkeypatch.setattr(FsspecStorage, "delete", counted(FsspecStorage.delete))

    return interrupt


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("files", range(1, 8))
def test_what_was_deleted_in_part_is_refused_and_can_be_deleted(
    job: OldJob, tmp_path: Path, store: str, remote: bool, files: int, interrupt: Callable[[int], None]
) -> None:
    where = f"{store}/one" if remote else str(tmp_path / "sp")
    write(job, where)
    assert left_of_deletion(where) is None
    interrupt(files)
    with pytest.raises(Interrupted):
        dispose_savepoint(where)
    for read in (open_savepoint, savepoint_info):
        with pytest.raises(CheckpointError, match="was deleted in part; dispose of it again"):
            read(where)
    assert left_of_deletion(where) == where
    dispose_savepoint(where)
    assert left_of_deletion(where) is None
    assert not (tmp_path / "sp").exists()
    assert not [name for name in fsspec.filesystem("memory").store if "one" in name]


def test_a_savepoint_that_cannot_be_deleted(job: OldJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(job, tmp_path / "sp")

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(CheckpointError, match="sp cannot be deleted: Permission denied; make the directory writable"):
        dispose_savepoint(tmp_path / "sp")


# --- Spark's offsets


def test_sparks_offsets_are_cut_at_the_micro_batch_of_the_epoch(job: OldJob, tmp_path: Path) -> None:
    spark = job.layout.spark
    for folder, names in {
        "offsets": ["3", "4", "5", ".4.crc"],
        "commits": ["3", "4"],
        "sources/0": ["0", "1", "2.compact", "3"],
        "sources/1": ["0"],
    }.items():
        (spark / folder).mkdir(parents=True)
        for name in names:
            (spark / folder / name).write_text("v1\n")
    (spark / "metadata").write_text("{}")
    (spark / "offsets" / "4").write_text('v1\n{"batchWatermarkMs":0}\n{"logOffset":2}\n{"topic":{"0":17}}\n')
    manifest = msgspec.structs.replace(job.manifest, spark={"batch_id": 4})
    write_savepoint(job.layout, manifest, tmp_path / "sp", durable=False)
    copied = CheckpointLayout(tmp_path / "sp").spark
    found = sorted(path.relative_to(copied).as_posix() for path in copied.rglob("*") if path.is_file())
    assert found == [
        "commits/3", "commits/4", "metadata", "offsets/3", "offsets/4",
        "sources/0/0", "sources/0/1", "sources/0/2.compact", "sources/1/0",
    ]  # fmt: skip
    missing = msgspec.structs.replace(job.manifest, spark={"batch_id": 8})
    with pytest.raises(CheckpointError, match="offsets of micro-batch 8 are not at"):
        write_savepoint(job.layout, missing, tmp_path / "sp2", durable=False)
