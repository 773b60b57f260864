"""The disk is full at each write in turn: a clear error, what was there stays, and with room again the job goes on.

The limit on file sizes (RLIMIT_FSIZE) stands for the full disk: a write ends in the middle of a file. It is the limit
of a process, so each case runs in a child.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.checkpoint.finished_splits import FinishedSplits
from headwater.checkpoint.manifest import Manifest, PartitionRecord, SourceRecord
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.snapshot.file import read_sections, write_snapshot
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError
from headwater.state.snapshot.section import Section

LIMITS = [0, 1, 10, 100]
SECTIONS = [Section("op", "keyed", "count", group, bytes(100)) for group in range(10)]


@contextlib.contextmanager
def disk_full_after(size: int) -> Iterator[None]:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


class Job:
    """A job with one complete checkpoint, of epoch 1."""

    def __init__(self, directory: Path) -> None:
        self.layout = CheckpointLayout(directory)
        self.store = ManifestStore(self.layout)
        self.store.take_over("job")
        self.splits = FinishedSplits(self.layout, "files")
        self.splits.add(map(str, range(1000)), 1, "a")
        self.checkpoint(1)

    def checkpoint(self, epoch: int) -> None:
        path = self.layout.new_snapshot(1, 0, epoch, "a", "full")
        ref = write_snapshot(path, {"epoch": epoch, "kind": "full", "key_groups": (0, 10)}, SECTIONS)
        self.store.write(self.manifest(epoch, [PartitionRecord(1, 0, [ref])]))

    def manifest(self, epoch: int, partitions: list[PartitionRecord]) -> Manifest:
        sources = {"files": SourceRecord(finished_splits=self.splits.record())}
        # The name makes the manifest longer than any of the limits.
        return Manifest("j", "job" * 50, epoch, 1, 0, 0, "f", 10, partitions=partitions, sources=sources)

    def check(self, epoch: int, splits: int) -> None:
        """The newest checkpoint is that of `epoch`, and whole; there are no drafts."""
        latest = ManifestStore(self.layout).latest()
        assert latest is not None and latest.epoch == epoch
        (ref,) = latest.partitions[0].snapshots
        assert list(read_sections(self.layout.snapshot(ref.name), ref)) == SECTIONS
        record = latest.sources["files"].finished_splits
        assert len(FinishedSplits.restore(self.layout, "files", record)) == splits
        for directory in ("manifests", "snapshots", "splits", "claims"):
            assert not [name for name in self.layout.storage.list(directory) if name.endswith(".tmp")]


def while_a_snapshot_is_written(job: Job, limit: int) -> None:
    with (
        disk_full_after(limit),
        pytest.raises(CheckpointError, match=r"snapshot .* of epoch 2 cannot be written: File"),
    ):
        job.checkpoint(2)
    job.check(epoch=1, splits=1000)


def while_finished_splits_are_written(job: Job, limit: int) -> None:
    more = [f"more-{number}" for number in range(500)]
    with (
        disk_full_after(limit),
        pytest.raises(CheckpointError, match=r"finished-splits file .* cannot be written: File"),
    ):
        job.splits.add(more, 2, "a")
    job.check(epoch=1, splits=1000)
    job.splits.add(more, 2, "b")
    job.checkpoint(2)
    job.check(epoch=2, splits=1500)
    job.splits.add([], 2, "c")


def while_a_manifest_is_written(job: Job, limit: int) -> None:
    draft = job.manifest(2, [])
    for _ in range(2):  # the second time the claim cannot be renewed either
        with disk_full_after(limit), pytest.raises(CheckpointError, match="cannot be written: File too large; make"):
            job.store.write(draft)
    job.check(epoch=1, splits=1000)


def while_another_driver_takes_over(job: Job, limit: int) -> None:
    other = ManifestStore(job.layout)
    with disk_full_after(min(limit, 10)), pytest.raises(CheckpointError, match="cannot be written: File"):
        other.take_over("job")
    job.check(epoch=1, splits=1000)


def in_a_child(work: Callable[[], None]) -> None:
    """Raises AssertionError with the child's traceback if `work` raised there."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)

    def run() -> None:
        try:
            work()
            send.send("")
        except BaseException:
            send.send(traceback.format_exc())

    process = context.Process(target=run)
    process.start()
    send.close()
    try:
        problem = receive.recv()
    except EOFError:
        problem = "the child died"
    process.join()
    assert not problem, problem


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize(
    "case",
    [
        while_a_snapshot_is_written,
        while_finished_splits_are_written,
        while_a_manifest_is_written,
        while_another_driver_takes_over,
    ],
)
def test_the_disk_is_full(case: Callable[[Job, int], None], limit: int, tmp_path: Path) -> None:
    def work() -> None:
        job = Job(tmp_path)
        case(job, limit)
        job.checkpoint(3)  # there is room again
        splits = len(job.splits)
        job.check(epoch=3, splits=splits)
        successor = ManifestStore(job.layout)
        latest = successor.take_over("job")
        assert latest is not None and latest.epoch == 3

    in_a_child(work)
    assert os.listdir(tmp_path / "manifests")
