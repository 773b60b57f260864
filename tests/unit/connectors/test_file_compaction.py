"""Joining part files while they are committed, and crashes in the middle of it. The contract suite has it too."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import CheckpointError, ConfigurationError, LocalDiskError
from headwater.common.serialization import Encoder
from headwater.datastream.connectors.file_system import (
    BucketAssigner,
    BulkWriters,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
)
from headwater.datastream.no_effect import NoEffectWarning, forget_warnings
from tests.unit.connectors.prepared_files import Crash, prepared

CONCAT = FileCompactor.concat_file_compactor()
EACH_CHECKPOINT = FileCompactStrategy.builder().enable_compaction_on_checkpoint(1).build()


def builder(base: Path) -> Any:
    sink = FileSink.for_row_format(str(base), Encoder.simple_string_encoder())
    return sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())


def visible(base: Path) -> list[str]:
    return [(base / name).read_text() for name in sorted(os.listdir(base)) if not name.startswith(".")]


def test_the_files_of_a_checkpoint_become_one(tmp_path: Path) -> None:
    sink = builder(tmp_path).enable_compact(EACH_CHECKPOINT, CONCAT).build()
    sink.create_committer().commit(prepared(sink))
    assert visible(tmp_path) == ["0a\n0b\n1a\n1b\n2a\n2b\n"]
    assert not list(tmp_path.glob(".part*")), "parts were left"


def test_a_delimiter_stands_between_files(tmp_path: Path) -> None:
    sink = builder(tmp_path).enable_compact(EACH_CHECKPOINT, FileCompactor.concat_file_compactor(b"--\n")).build()
    sink.create_committer().commit(prepared(sink, 2))
    assert visible(tmp_path) == ["0a\n0b\n--\n1a\n1b\n"]


def test_a_joined_file_takes_no_more_than_its_size(tmp_path: Path) -> None:
    strategy = FileCompactStrategy.builder().set_size_threshold(12).build()
    sink = builder(tmp_path).enable_compact(strategy, CONCAT).build()
    sink.create_committer().commit(prepared(sink, 5))
    assert sorted(map(len, visible(tmp_path))) == [6, 12, 12]


@pytest.mark.parametrize("how", ["identical", "disabled"])
def test_files_stay_apart_if_asked(tmp_path: Path, how: str) -> None:
    made = builder(tmp_path).enable_compact(EACH_CHECKPOINT, FileCompactor.identical_file_compactor())
    sink = (made if how == "identical" else made.enable_compact(EACH_CHECKPOINT, CONCAT).disable_compact()).build()
    sink.create_committer().commit(prepared(sink))
    assert len(visible(tmp_path)) == 3


@pytest.mark.parametrize("call", ["rename", "unlink", "fsync"])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_commit_that_died_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, after: int) -> None:
    """At the n-th call of a function of the file system; whatever was done before, everything is there once."""
    sink = builder(tmp_path).enable_compact(EACH_CHECKPOINT, CONCAT).build()
    committables = prepared(sink)
    original: Callable[..., Any] = getattr(os, call)
    calls = 0

    def crash(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > after:
            raise Crash
        return original(*arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, call, crash)
        try:
            sink.create_committer().commit(committables)
        except Crash:
            assert calls == after + 1
    committer = sink.create_committer()
    committer.commit(committables)
    committer.delete_leftovers(committer.find_leftovers("job"))
    assert visible(tmp_path) == ["0a\n0b\n1a\n1b\n2a\n2b\n"]
    assert len(os.listdir(tmp_path)) == 1


def test_what_was_committed_apart_stays_so_when_compaction_is_enabled(tmp_path: Path) -> None:
    plain = builder(tmp_path).build()
    committables = prepared(plain)
    plain.create_committer().commit(committables)
    joining = builder(tmp_path).enable_compact(EACH_CHECKPOINT, CONCAT).build()
    joining.create_committer().commit(committables)
    assert visible(tmp_path) == ["0a\n0b\n", "1a\n1b\n", "2a\n2b\n"]


def test_more_files_than_were_joined_are_never_taken_as_done(tmp_path: Path) -> None:
    sink = builder(tmp_path).enable_compact(EACH_CHECKPOINT, CONCAT).build()
    committables = prepared(sink)
    sink.create_committer().commit(committables[:2])
    with pytest.raises(CheckpointError, match="neither it nor its pending form"):
        sink.create_committer().commit(committables)
    assert (tmp_path / committables[2].pending_name).exists()


def test_a_part_that_was_changed_is_not_joined(tmp_path: Path) -> None:
    sink = builder(tmp_path).enable_compact(EACH_CHECKPOINT, CONCAT).build()
    committables = prepared(sink)
    (tmp_path / committables[1].pending_name).write_text("x")
    with pytest.raises(CheckpointError, match="changed from outside"):
        sink.create_committer().commit(committables)
    assert visible(tmp_path) == []


def test_a_full_disk_is_named_and_the_commit_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    sink = builder(tmp_path).enable_compact(EACH_CHECKPOINT, CONCAT).build()
    committables = prepared(sink)
    with monkeypatch.context() as patched:
        patched.setattr("headwater.datastream.connectors.file_compaction.copyfileobj", full_disk)
        with pytest.raises(LocalDiskError, match=rf"cannot be written to {tmp_path}: No space left .*; make room"):
            sink.create_committer().commit(committables)
    assert visible(tmp_path) == []
    sink.create_committer().commit(committables)
    assert len(visible(tmp_path)) == 1


def test_settings_that_make_no_sense(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no rule"):
        FileCompactStrategy.builder().build()
    for build in (
        lambda: FileCompactStrategy.builder().enable_compaction_on_checkpoint(0),
        lambda: FileCompactStrategy.builder().set_size_threshold(0),
    ):
        with pytest.raises(ConfigurationError, match="expected 1 or more"):
            build()
    with pytest.raises(ConfigurationError, match="cannot be joined"):
        FileSink.for_bulk_format(str(tmp_path), BulkWriters.parquet()).enable_compact(EACH_CHECKPOINT, CONCAT)
    with pytest.raises(ConfigurationError, match="expected a FileCompactStrategy"):
        builder(tmp_path).enable_compact("always", CONCAT)


def test_settings_without_effect_say_so() -> None:
    forget_warnings()
    with pytest.warns(NoEffectWarning, match="driver"):
        FileCompactStrategy.builder().set_num_compact_threads(4)
