"""What killed drivers and slots leave under temporary names goes with the next start of their job; and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.savepoint.savepoint import is_savepoint, write_savepoint
from headwater.checkpoint.savepoint.unfinished import note_unfinished, remove_unfinished
from headwater.checkpoint.start.copied_checkpoint import Fork
from headwater.checkpoint.storage.base import StorageSpec
from headwater.checkpoint.storage.durable_file import create_exclusively
from headwater.checkpoint.storage.local_copies import LocalCopies
from headwater.checkpoint.store import ManifestStore

MANIFEST = Manifest("id", "job", 3, 1, 0, 0, "plan", 128)


def files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


@pytest.fixture
def layout(tmp_path: Path) -> CheckpointLayout:
    made = CheckpointLayout(tmp_path / "checkpoints")
    made.create()
    return made


def test_temporary_files_of_the_directory_go(tmp_path: Path, layout: CheckpointLayout) -> None:
    store = ManifestStore(layout)
    store.take_over("job")
    store.write(MANIFEST)
    before = files(tmp_path)
    left = [
        "COMMITTED.tmp",
        "JOB.0123456789abcdef.tmp",
        "claims/000000000001.claim.0123456789abcdef.tmp",
        "claims/000000000002.base.0123456789abcdef.tmp",
        "manifests/epoch-000000000004.manifest.0123456789abcdef.tmp",
        "snapshots/s1-p0-e000000000004-a0.full.tmp",
        "splits/source-e000000000004-a0.ids.tmp",
    ]
    others = ["claims/000000000009.claim.0123456789abcdef.tmp", "snapshots/somebody.elses.tmp", "notes.txt"]
    for name in (*left, *others):
        (tmp_path / "checkpoints" / name).write_bytes(b"half")
    store = ManifestStore(layout)
    store.take_over("job")
    assert {f"checkpoints/{name}" for name in left} <= files(tmp_path), "a start that is not sure deletes nothing"
    store.remove_orphans()
    new_claim = {"checkpoints/claims/000000000002.claim", "checkpoints/claims/000000000002.base"}
    assert files(tmp_path) == before | new_claim | {f"checkpoints/{name}" for name in others}


def test_a_driver_that_lost_its_draft_to_another_one_has_lost_the_race(tmp_path: Path) -> None:
    path = tmp_path / "000000000002.claim"
    path.write_bytes(b"the other one")
    draft = tmp_path / "draft.tmp"
    link = os.link

    def lose(*arguments: object, **named: object) -> None:
        draft.unlink()
        link(*arguments, **named)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "link", lose)
        with pytest.raises(FileExistsError):
            create_exclusively(path, b"this one", draft.name, durable=False)


def test_a_copy_of_a_running_jobs_checkpoint_that_was_never_finished_goes(
    tmp_path: Path, layout: CheckpointLayout
) -> None:
    own = tmp_path / "checkpoints"
    for name in (".fork.01234567.tmp", ".somebody.elses.tmp"):
        (own / name / "snapshots").mkdir(parents=True)
    Fork(own).remove()
    assert not (own / ".fork.01234567.tmp").exists() and (own / ".somebody.elses.tmp").exists()


SAVEPOINT = """
import sys, signal
from headwater.checkpoint.savepoint import savepoint
from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.storage.base import StorageSpec
from headwater.checkpoint.savepoint.unfinished import note_unfinished
finish = savepoint._finish
def hang(*args, **named):
    print("ready", flush=True)
    signal.pause()
savepoint._finish = hang
layout, target = CheckpointLayout(sys.argv[1]), sys.argv[2]
target = StorageSpec(target) if "://" in target else target
with note_unfinished(layout, target):
    savepoint.write_savepoint(layout, Manifest("id", "job", 3, 1, 0, 0, "plan", 128), target)
"""


def killed_in_a_savepoint(layout: CheckpointLayout, target: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SAVEPOINT, str(layout.root), target], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGKILL)


def test_a_savepoint_that_was_killed_goes_with_the_next_start(tmp_path: Path, layout: CheckpointLayout) -> None:
    savepoints = tmp_path / "savepoints"
    killed_in_a_savepoint(layout, str(savepoints / "one"))
    (draft,) = os.listdir(savepoints)
    assert draft.startswith(".one.")
    others = [".one-more.01234567.tmp", ".one.two.01234567.tmp", ".two.01234567.tmp", ".one.notes"]
    for name in others:  # of other jobs, which may be writing them just now
        (savepoints / name).mkdir()
    write_savepoint(layout, MANIFEST, savepoints / "whole")
    remove_unfinished(layout, {})
    assert sorted(os.listdir(savepoints)) == sorted([*others, "whole"])
    assert not list((tmp_path / "checkpoints" / "unfinished").iterdir())


def test_a_savepoint_in_an_object_store_goes_too(tmp_path: Path, layout: CheckpointLayout) -> None:
    killed_in_a_savepoint(layout, f"local://{tmp_path}/bucket/one")
    (tmp_path / "bucket" / "one" / "snapshots").mkdir(parents=True, exist_ok=True)
    (tmp_path / "bucket" / "one" / "snapshots" / "s1-p0-e000000000003-a0.full").write_bytes(b"sent")
    remove_unfinished(layout, {})
    assert files(tmp_path / "bucket") == set()


@pytest.mark.parametrize("remote", [False, True])
def test_one_that_was_finished_stays(tmp_path: Path, layout: CheckpointLayout, remote: bool) -> None:
    """The driver died between the savepoint and the end of the note."""
    options = {"auto_mkdir": True}
    target = StorageSpec(f"local://{tmp_path}/savepoints/one", options) if remote else tmp_path / "savepoints" / "one"
    note = note_unfinished(layout, target)
    note.__enter__()
    write_savepoint(layout, MANIFEST, target)
    remove_unfinished(layout, {})
    assert is_savepoint(target)


def test_a_place_that_is_not_there_is_looked_at_again(tmp_path: Path, layout: CheckpointLayout) -> None:
    """It may be on another host, or not mounted."""
    target = tmp_path / "mounted" / "one"
    note_unfinished(layout, target).__enter__()
    for _ in range(2):
        remove_unfinished(layout, {})
        assert len(list((tmp_path / "checkpoints" / "unfinished").iterdir())) == 1
    (tmp_path / "mounted" / ".one.01234567.tmp").mkdir(parents=True)
    remove_unfinished(layout, {})
    assert os.listdir(tmp_path / "mounted") == []


UPLOAD = """
import sys, signal
from headwater.checkpoint.storage.base import StorageSpec, open_storage
storage = open_storage(StorageSpec(sys.argv[1], {}, sys.argv[2] or None))
with storage.write("snapshots/s1-p0-e000000000003-a0.full") as file:
    file.write(b"x" * 100_000)
    file.flush()
    print("ready", flush=True)
    signal.pause()
"""


@pytest.fixture
def upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    yield tmp_path / "temporary"


def uploading(tmp_path: Path, copies: Path | None) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", UPLOAD, f"local://{tmp_path}/bucket", str(copies or "")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def test_an_upload_that_was_killed_leaves_nothing(tmp_path: Path, upload: Path) -> None:
    with uploading(tmp_path, None) as process:
        os.kill(process.pid, signal.SIGKILL)
    assert os.listdir(upload) == []


def test_drafts_of_local_copies_go_when_their_writer_is_gone(tmp_path: Path, upload: Path) -> None:
    directory = tmp_path / "copies"
    url = f"local://{tmp_path}/bucket"
    with uploading(tmp_path, directory) as dead, uploading(tmp_path, directory) as alive:
        try:
            place = LocalCopies(directory, url, 1 << 30).directory
            assert len(list(place.iterdir())) == 2
            os.kill(dead.pid, signal.SIGKILL)
            dead.wait()
            hour_ago = time.time() - 3600
            for draft in place.iterdir():
                os.utime(draft, (hour_ago, hour_ago))
            LocalCopies(directory, url, 1 << 30).draft()
            assert len(list(place.iterdir())) == 1, "one is still being written"
        finally:
            alive.kill()
    assert files(tmp_path / "bucket") == set()
