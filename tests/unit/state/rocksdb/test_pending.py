"""Plain values wait in memory until somebody needs them in the database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import StateError
from headwater.state.descriptors import ValueStateDescriptor
from headwater.state.rocksdb import store as rocksdb_store
from headwater.state.rocksdb import value as rocksdb_value
from headwater.state.rocksdb.backend import RocksDBKeyedStateBackend
from headwater.state.rocksdb.options import RocksDBOptions
from headwater.state.snapshot.payload import decode


class Job:
    """One backend with one state."""

    def __init__(self, directory: Path) -> None:
        self.backend = RocksDBKeyedStateBackend("op", 4, range(4), RocksDBOptions(8 << 20, directory))
        self.state: Any = None

    def epoch(self, changes: dict[Any, Any], *, commit: bool = True) -> None:
        self.backend.begin_epoch()
        self.apply(changes)
        if commit:
            self.backend.commit_epoch()
        else:
            self.backend.rollback_epoch()

    def apply(self, changes: dict[Any, Any]) -> None:
        if self.state is None:
            self.state = self.backend.get_state(ValueStateDescriptor("v"))
        for key, value in changes.items():
            self.backend.current_key = key
            self.state.update(value)

    def stored(self) -> int:
        """How many entries the database has."""
        return sum(1 for group in range(4) for _ in self.backend.database.scan(group.to_bytes(2, "big")))

    def values(self, keys: range) -> list[Any]:
        return [self.backend.committed_value("v", key) for key in keys]


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(tmp_path)
    yield job
    job.backend.close()


def test_a_key_that_changes_in_every_epoch_is_written_once(job: Job) -> None:
    for number in range(5):
        job.epoch({1: number, 2: (number, "a")})
        assert job.stored() == 0
        assert job.values(range(1, 3)) == [number, (number, "a")]
    assert sorted(job.backend.keys("v")) == [1, 2]  # goes through the database
    assert job.stored() == 2


def test_what_may_change_in_place_is_written_after_each_epoch(job: Job) -> None:
    job.epoch({1: [1], 2: ([2],), 3: 3})
    assert job.stored() == 2
    job.epoch({1: 1, 2: ([3],), 3: [3]})  # 1 waits now, 3 does not any more
    assert job.stored() == 3
    assert job.values(range(1, 4)) == [1, ([3],), [3]]
    job.epoch({1: 9, 2: 9, 3: 9}, commit=False)
    assert job.values(range(1, 4)) == [1, ([3],), [3]]
    assert job.backend.number_of_entries() == 3


def test_a_query_during_an_epoch_sees_what_the_last_one_left(job: Job) -> None:
    job.epoch({1: "old"})
    job.backend.begin_epoch()
    job.apply({1: "new", 2: "new"})
    assert job.values(range(1, 3)) == ["old", None]
    job.apply({1: None})
    assert job.values(range(1, 3)) == ["old", None]
    assert sorted(job.backend.keys("v")) == [2]  # in the midst of the epoch: writes the old value, not the new ones
    assert job.values(range(1, 3)) == ["old", None]
    job.backend.rollback_epoch()
    assert job.values(range(1, 3)) == ["old", None]
    assert job.backend.number_of_entries() == 1


def test_a_native_checkpoint_has_what_waited(job: Job, tmp_path: Path) -> None:
    job.epoch({1: 1, 2: 2, 3: 3})
    job.epoch({2: None, 3: 4})
    job.backend.native_checkpoint(tmp_path / "checkpoint")
    restored = Job(tmp_path / "other")
    try:
        assert restored.backend.load_native(tmp_path / "checkpoint")
        assert restored.values(range(1, 4)) == [1, None, 4]
    finally:
        restored.backend.close()


@pytest.mark.parametrize("at_once", [0, 2, 100])
def test_a_native_checkpoint_in_parts_has_all(
    job: Job, tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rocksdb_value, "WRITTEN_AT_ONCE", at_once)
    job.epoch({1: 1, 2: 2, 3: 3, 4: [4], 5: 5})
    assert sorted(job.backend.keys("v")) == [1, 2, 3, 4, 5]  # all are in the database now
    job.epoch({2: None, 3: 33, 6: 6, 7: 7})
    job.epoch({7: None})
    directory, sections = job.backend.new_native_parts()
    job.epoch({1: "later", 2: "later", 3: "later", 7: "later"})  # the sections are of the moment of the call
    restored = Job(tmp_path / "other")
    try:
        assert restored.backend.load_native(directory)
        for section in sections:
            restored.backend.load_section(section)
        assert restored.values(range(1, 8)) == [1, None, 33, [4], 5, 6, None]
        assert restored.backend.number_of_entries() == 5
    finally:
        restored.backend.close()


def test_native_checkpoints_in_parts_write_what_stays_as_it_is(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rocksdb_value, "WRITTEN_AT_ONCE", 10)
    job.epoch({key: 0 for key in range(30)})
    written = []
    for number in range(1, 6):
        job.backend.begin_epoch()
        job.apply({key: number for key in range(5)})
        job.backend.commit_epoch(cut=True)
        _, sections = job.backend.new_native_parts()
        on_top = sum(len(decode(section.payload, "op", "v").entries.keys) for section in sections)
        job.backend.checkpoint_completed()
        written.append((job.stored(), on_top))
    # At first all have just changed. Then those that have not go to the database, until few enough wait.
    assert written == [(0, 30), (10, 20), (20, 10), (30, 0), (30, 0)]


def test_a_native_checkpoint_in_parts_is_made_between_epochs_only(job: Job) -> None:
    job.epoch({1: 1})
    job.backend.begin_epoch()
    with pytest.raises(StateError, match="between two epochs only"):
        job.backend.new_native_parts()


def test_entries_that_wait_make_room(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rocksdb_store, "_MIN_CACHED", 10)
    monkeypatch.setattr(job.backend.memory, "_object_bytes", 0)
    for first in range(0, 100, 5):
        job.epoch({key: key for key in range(first, first + 5)})
        waiting = first + 5 - job.stored()
        assert waiting <= 15
    assert job.values(range(100)) == list(range(100))


def test_a_key_that_came_and_went_leaves_nothing(job: Job) -> None:
    job.epoch({1: 1})
    job.backend.begin_epoch()
    job.apply({1: None, 2: 2})
    job.apply({2: None})
    job.backend.commit_epoch()
    assert job.backend.number_of_entries() == 0
    assert job.backend.keys("v") == []
    assert job.values(range(1, 3)) == [None, None]


def test_a_change_in_place_is_taken_back(job: Job) -> None:
    job.epoch({1: [1]})
    job.backend.begin_epoch()
    job.backend.current_key = 1
    job.state.value().append(2)
    job.backend.rollback_epoch()
    assert job.values(range(1, 2)) == [[1]]
    assert job.state.value() == [1]


def test_what_waits_is_written_though_reading_ahead_failed(job: Job, tmp_path: Path) -> None:
    job.epoch({1: [1], 2: 2})
    get = job.backend.database.get

    def broken(_: Any) -> Any:
        raise RuntimeError("IO error")

    job.backend.database.get = broken
    with pytest.raises(RuntimeError):
        job.backend.prefetch([3])
    job.backend.database.get = get
    job.backend.native_checkpoint(tmp_path / "checkpoint")
    assert job.stored() == 2
