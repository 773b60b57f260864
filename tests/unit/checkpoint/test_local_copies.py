"""Local recovery: copies are read where they are right, and never believed where they are not."""

from __future__ import annotations

import logging
import os
import random
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.snapshot.file import SnapshotRef, read_header, read_sections, write_snapshot
from headwater.checkpoint.storage.base import StorageSpec
from headwater.checkpoint.storage.fsspec import FsspecStorage
from headwater.checkpoint.storage.local_copies import LocalCopies
from headwater.common.errors import CheckpointError
from headwater.state.snapshot.section import Section

SECTIONS = [Section("op", "keyed", "s", group, bytes([group]) * 100) for group in range(10)]


class Job:
    """A remote storage, and one machine's copies of it."""

    def __init__(self, directory: Path, name: str, max_bytes: int = 1 << 20) -> None:
        spec = StorageSpec(f"memory://copies-{name}", copies_directory=str(directory), copies_max_bytes=max_bytes)
        self.layout = CheckpointLayout(spec)
        assert isinstance(self.layout.storage, FsspecStorage) and self.layout.storage.copies is not None
        self.storage, self.copies = self.layout.storage, self.layout.storage.copies
        self.remote_reads: list[str] = []

    def write(self, epoch: int = 1, partition: int = 0) -> SnapshotRef:
        path = self.layout.new_snapshot(1, partition, epoch, "a", "delta")
        return write_snapshot(path, {"epoch": epoch, "kind": "delta", "key_groups": (0, 10)}, SECTIONS)

    def read(self, ref: SnapshotRef) -> list[Section]:
        return list(read_sections(self.layout.snapshot(ref.name), ref))

    def names(self) -> list[str]:
        return sorted(path.name for path in self.copies.directory.iterdir())


@pytest.fixture
def job(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Job:
    job = Job(tmp_path / "copies", request.node.name)
    real = job.storage.open

    def counted(name: str) -> Any:
        job.remote_reads.append(name)
        return real(name)

    monkeypatch.setattr(job.storage, "open", counted)
    return job


def test_what_this_machine_wrote_it_need_not_fetch(job: Job) -> None:
    ref = job.write()
    assert job.names() == [ref.name]
    assert job.read(ref) == SECTIONS
    assert read_header(job.layout.snapshot(ref.name), ref)["epoch"] == 1
    assert job.remote_reads == []


def test_without_a_copy_the_storage_is_read(job: Job) -> None:
    ref = job.write()
    job.copies.drop(f"snapshots/{ref.name}")
    assert job.read(ref) == SECTIONS
    assert job.remote_reads == [f"snapshots/{ref.name}"]


def test_a_damaged_copy_is_noticed_wherever_it_is_damaged(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    ref = job.write()
    copy = job.copies.directory / ref.name
    good = copy.read_bytes()
    chance = random.Random(1)
    with caplog.at_level(logging.WARNING):
        for _ in range(300):
            bad = bytearray(good)
            if chance.random() < 0.5:
                del bad[chance.randrange(len(bad)) :]
            else:
                bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
            copy.write_bytes(bad)
            assert job.read(ref) == SECTIONS
    assert "it is a local copy: reading memory://" in caplog.text
    assert len(job.remote_reads) == 300


def test_a_copy_of_another_attempt_is_not_used(job: Job) -> None:
    ref, other = job.write(1), job.write(2)
    os.replace(job.copies.directory / other.name, job.copies.directory / ref.name)
    assert job.read(ref) == SECTIONS
    assert len(job.remote_reads) == 1


def test_damage_in_the_storage_itself_is_an_error(job: Job) -> None:
    ref = job.write()
    job.copies.drop(ref.name)
    with job.storage.write(f"snapshots/{ref.name}") as file:
        file.write(b"something else")
    with pytest.raises(CheckpointError, match=r"snapshot memory://.* of epoch 1 is damaged"):
        job.read(ref)


def test_what_could_not_be_uploaded_is_no_copy(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, source: Path) -> None:
        raise PermissionError(13, "Access Denied")

    monkeypatch.setattr(job.storage, "upload", refuse)
    with pytest.raises(CheckpointError, match="cannot be written: Access Denied"):
        job.write()
    assert job.names() == []


def test_deleting_a_file_deletes_its_copy(job: Job) -> None:
    ref = job.write()
    job.storage.delete(f"snapshots/{ref.name}")
    assert job.names() == []


def test_the_oldest_make_room(tmp_path: Path) -> None:
    copies = LocalCopies(tmp_path, "s3://b/job", max_bytes=250)
    for number in range(4):
        draft = copies.draft()
        draft.write_bytes(b"x" * 100)
        os.utime(draft, (number, number))
        copies.keep(f"snapshots/{number}", draft)
        if number == 1:
            assert copies.find("snapshots/0") is not None  # it was needed: now it is the youngest
    assert sorted(path.name for path in copies.directory.iterdir()) == ["0", "3"]


def test_a_directory_that_cannot_be_used_costs_no_checkpoint(
    tmp_path: Path, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a file").write_text("")
    job = Job(tmp_path / "a file", request.node.name)
    with caplog.at_level(logging.WARNING):
        ref = job.write()
    assert "cannot be used for local copies" in caplog.text
    assert job.read(ref) == SECTIONS


def test_two_jobs_share_a_directory_and_nothing_else(tmp_path: Path) -> None:
    one, two = (LocalCopies(tmp_path, url, 1000) for url in ("s3://b/one", "s3://b/two"))
    draft = one.draft()
    draft.write_bytes(b"1")
    one.keep("snapshots/same-name", draft)
    assert two.find("snapshots/same-name") is None
    assert one.find("snapshots/same-name") is not None
