"""Readers take files away as soon as they are visible, also those of a commit that did not come to its end."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import CheckpointError
from headwater.common.serialization import Encoder
from headwater.datastream.connectors.file_system import BucketAssigner, FileCompactor, FileCompactStrategy, FileSink
from tests.unit.connectors import prepared_files
from tests.unit.connectors.prepared_files import Crash

JOINED = FileCompactStrategy.builder().set_size_threshold(12).build()


class ByFirstLetter(BucketAssigner):
    def get_bucket_id(self, element: Any, timestamp: int | None) -> str:
        return str(element)[0]


def file_sink(base: Path, *, joins: bool = False, buckets: bool = False) -> FileSink:
    builder = FileSink.for_row_format(str(base), Encoder.simple_string_encoder())
    builder.with_bucket_assigner(ByFirstLetter() if buckets else BucketAssigner.base_path_bucket_assigner())
    if joins:
        builder.enable_compact(JOINED, FileCompactor.concat_file_compactor())
    return builder.build()


def prepared(sink: FileSink, epoch: int = 3) -> list[Any]:
    """The output of five partitions: with compaction two joined files, and one by itself."""
    return prepared_files.prepared(sink, 5, epoch)


def lines() -> Counter[str]:
    return Counter(f"{partition}{letter}" for partition in range(5) for letter in "ab")


class Reader:
    """Moves each visible file away, with what is in it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.seen: Counter[str] = Counter()

    def take(self, most: int = 100) -> None:
        for path in sorted(self.base.rglob("*"))[:most]:
            if path.is_file() and not path.name.startswith("."):
                self.seen.update(path.read_text().split())
                path.unlink()


@pytest.mark.parametrize("joins", [False, True])
def test_files_that_were_taken_away_are_committed(
    tmp_path: Path, joins: bool, caplog: pytest.LogCaptureFixture
) -> None:
    sink, reader = file_sink(tmp_path, joins=joins), Reader(tmp_path)
    committables = prepared(sink)
    sink.create_committer().commit(committables)
    reader.take()
    committer = sink.create_committer()
    committer.commit(committables)  # the driver died before it noted that they are committed
    committer.delete_leftovers(committer.find_leftovers("job"))
    reader.take()
    assert reader.seen == lines()
    assert os.listdir(tmp_path) == []
    assert all(committable.final_name in caplog.text for committable in committables), "nothing is given up in silence"


def test_there_is_one_note_and_it_is_of_the_last_commit(tmp_path: Path) -> None:
    sink, reader = file_sink(tmp_path), Reader(tmp_path)
    committer = sink.create_committer()
    names: set[str] = set()
    for epoch in range(3):
        committables = prepared(sink, epoch)
        committer.commit(committables)
        reader.take()
        (note,) = os.listdir(tmp_path)
        assert note.startswith(".committing-")
        names.add(note)
    assert len(names) == 3
    committer.commit(committables)  # the same driver is asked again, and so is the next one
    sink.create_committer().commit(committables)
    os.unlink(tmp_path / note)
    with pytest.raises(CheckpointError, match="neither it nor its pending form"):
        committer.commit(committables)


@pytest.mark.parametrize("joins", [False, True])
@pytest.mark.parametrize("call", ["rename", "replace", "unlink", "fsync", "stat"])
def test_wherever_a_commit_dies_and_whatever_is_taken_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joins: bool, call: str
) -> None:
    original: Callable[..., Any] = getattr(os, call)
    for after in range(60):
        base = tmp_path / f"{after}"
        sink, reader = file_sink(base, joins=joins), Reader(base)
        committables = prepared(sink)
        calls = 0

        def crash(*arguments: Any, after: int = after, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > after:
                raise Crash
            return original(*arguments, **named)

        with monkeypatch.context() as patched:
            patched.setattr(os, call, crash)
            try:
                sink.create_committer().commit(committables)
                died = False
            except Crash:
                died = True
        reader.take(most=2)
        committer = sink.create_committer()
        committer.commit(committables)
        committer.delete_leftovers(committer.find_leftovers("job"))
        reader.take()
        assert reader.seen == lines(), f"died at {call} number {after + 1}"
        assert os.listdir(base) == []
        if not died:
            return
    raise AssertionError("the commit never came to its end")


def test_a_bucket_may_be_taken_away_as_a_whole(tmp_path: Path) -> None:
    sink, reader = file_sink(tmp_path, buckets=True), Reader(tmp_path)
    committables = prepared(sink)
    sink.create_committer().commit(committables)
    reader.take()
    for directory in {committable.directory for committable in committables}:
        os.rmdir(directory)
    sink.create_committer().commit(committables)
    assert reader.seen == lines()


@pytest.mark.parametrize("joins", [False, True])
def test_what_no_try_can_have_reached_was_not_committed(tmp_path: Path, joins: bool) -> None:
    """Files are committed in their order: behind one that is still pending, one that is gone is lost."""
    sink = file_sink(tmp_path, joins=joins)
    committables = prepared(sink)
    with pytest.raises(CheckpointError, match="changed from outside"):
        changed = tmp_path / committables[0].pending_name
        content = changed.read_bytes()
        changed.write_bytes(b"x")
        sink.create_committer().commit(committables)
    changed.write_bytes(content)
    (tmp_path / committables[4].pending_name).unlink()
    with pytest.raises(CheckpointError, match=f"{committables[4].final_name} cannot be made visible"):
        sink.create_committer().commit(committables)


@pytest.mark.parametrize("joins", [False, True])
def test_what_was_never_tried_was_not_committed(tmp_path: Path, joins: bool) -> None:
    sink = file_sink(tmp_path, joins=joins)
    sink.create_committer().commit(prepared(sink, epoch=2))  # another one was
    committables = prepared(sink)
    for committable in committables:
        (tmp_path / committable.pending_name).unlink()
    with pytest.raises(CheckpointError, match="cannot be made visible"):
        sink.create_committer().commit(committables)


def test_a_directory_that_is_not_there_proves_nothing(tmp_path: Path) -> None:
    """It may not be mounted."""
    sink = file_sink(tmp_path / "mounted")
    committables = prepared(sink)
    sink.create_committer().commit(committables)
    (tmp_path / "mounted").rename(tmp_path / "elsewhere")
    for _ in range(2):
        with pytest.raises(CheckpointError, match="cannot be made visible"):
            sink.create_committer().commit(committables)
    (tmp_path / "elsewhere").rename(tmp_path / "mounted")
    sink.create_committer().commit(committables)


def test_at_most_one_note_is_kept(tmp_path: Path) -> None:
    sink = file_sink(tmp_path)
    committer = sink.create_committer()
    for epoch in range(5):
        committer.commit(prepared(sink, epoch))
        assert sum(name.startswith(".") for name in os.listdir(tmp_path)) == 1
    assert committer.find_leftovers("another") == []
    committer.delete_leftovers(committer.find_leftovers("job"))
    assert not any(name.startswith(".") for name in os.listdir(tmp_path))
