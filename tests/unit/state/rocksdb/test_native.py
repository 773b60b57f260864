"""Native checkpoints: links to the files that did not change, and what they hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import StateError
from headwater.state.backends import make_keyed_backend
from headwater.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from headwater.state.keys.key_groups import key_group
from headwater.state.rocksdb.backend import RocksDBKeyedStateBackend
from headwater.state.rocksdb.native import read_native_sections
from headwater.state.rocksdb.options import RocksDBOptions

GROUPS = range(16)
VALUE = ValueStateDescriptor("value")
LIST = ListStateDescriptor("list")
MAP = MapStateDescriptor("map")


class Fixture:
    """Makes backends on one disk and closes them."""

    def __init__(self, directory: Path) -> None:
        self.options = RocksDBOptions(16 << 20, directory / "state")
        self.directory = directory
        self.made: list[RocksDBKeyedStateBackend] = []

    def backend(
        self, key_groups: range = GROUPS, uid: str = "uid", max_parallelism: int = 16
    ) -> RocksDBKeyedStateBackend:
        self.made.append(RocksDBKeyedStateBackend(uid, max_parallelism, key_groups, self.options))
        return self.made[-1]

    def checkpoint(self, backend: RocksDBKeyedStateBackend, name: str = "checkpoint") -> Path:
        backend.commit_epoch(cut=True)
        backend.native_checkpoint(self.directory / name)
        return self.directory / name


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Fixture]:
    fixture = Fixture(tmp_path)
    yield fixture
    for backend in fixture.made:
        backend.close()


def fill(backend: Any) -> None:
    """Something of every shape, with keys of every sort."""
    for key in ("a", 1.0, ("t", None), frozenset([1])):
        backend.current_key, backend.current_namespace = key, 7
        backend.get_state(VALUE).update({"of": key})
        backend.get_state(LIST).add_all(range(2000))
        backend.get_state(MAP).put_all({True: 1, "b": [2]})
        backend.get_namespaced_state(ValueStateDescriptor("windows")).update(key)
        backend.get_folded_panes("fold").reduce([key], [0], [5], lambda left, right: left + right)
        backend.get_element_panes("elements").append([key], [-10], [5])
        backend.event_timers.register(3, key, 7)
    backend.processing_timers.register(4, "a")


def content(backend: Any) -> Any:
    """All that is stored, as the heap backend sees it."""
    heap: Any = make_keyed_backend("heap", "uid", 16, GROUPS)
    for section in backend.full_sections():
        heap.load_section(section)
    tables = {name: heap._states[name].store.table for name in heap.state_names()}
    timers = [sorted(queue.timers(), key=repr) for queue in (heap.event_timers, heap.processing_timers)]
    return tables, timers


def sst_files(directory: Path) -> dict[str, int]:
    """{name: inode}"""
    return {path.name: os.stat(path).st_ino for path in directory.iterdir() if path.suffix == ".sst"}


def test_a_native_checkpoint_can_be_loaded(made: Fixture) -> None:
    backend = made.backend()
    fill(backend)
    checkpoint = made.checkpoint(backend)
    expected = content(backend)
    other = made.backend()
    assert other.load_native(checkpoint)
    assert content(other) == expected
    assert other.number_of_entries() == backend.number_of_entries() == 24
    other.current_key = "a"
    assert other.get_state(LIST).get() == list(range(2000))
    assert other.committed_value("map", 1) == {True: 1, "b": [2]}
    assert set(other.get_folded_panes("fold").namespaces()) == {0}
    assert type(next(key for key in other.keys("value") if key == 1)) is float


def test_what_is_loaded_goes_on_and_leaves_the_checkpoint_alone(made: Fixture) -> None:
    backend = made.backend()
    fill(backend)
    checkpoint = made.checkpoint(backend)
    before = {path.name: path.read_bytes() for path in checkpoint.iterdir()}
    other = made.backend()
    other.load_native(checkpoint)
    other.current_key = "a"
    other.get_state(VALUE).update("new")
    other.get_state(MAP).clear()
    second = made.checkpoint(other, "second")
    third = made.backend()
    third.load_native(second)
    assert third.committed_value("value", "a") == "new" and third.committed_value("map", "a") is None
    assert backend.committed_value("value", "a") == {"of": "a"}
    assert {path.name: path.read_bytes() for path in checkpoint.iterdir()} == before


def test_it_has_what_was_committed_and_not_more(made: Fixture) -> None:
    backend = made.backend()
    state = backend.get_state(VALUE)
    backend.current_key = "k"
    state.update("committed")
    backend.commit_epoch()
    state.update("rolled back")
    backend.rollback_epoch()
    checkpoint = made.checkpoint(backend)
    state.update("later")
    backend.commit_epoch()
    other = made.backend()
    other.load_native(checkpoint)
    assert other.committed_value("value", "k") == "committed"
    backend.begin_epoch()
    with pytest.raises(StateError, match="between two epochs"):
        backend.native_checkpoint(made.directory / "never")


def test_after_a_small_change_nearly_all_files_are_shared(made: Fixture) -> None:
    backend = made.backend()
    state = backend.get_state(VALUE)
    for key in range(60_000):
        backend.current_key = key
        state.update(os.urandom(200))
    first = made.checkpoint(backend, "first")
    for key in range(50):
        backend.current_key = key
        state.update("changed")
    second = made.checkpoint(backend, "second")
    old, new = sst_files(first), sst_files(second)
    shared = {name for name in new if old.get(name) == new[name]}
    assert len(old) >= 4 and len(shared) >= len(old) - 1
    added = sum((second / name).stat().st_size for name in new if name not in shared)
    assert added < 0.01 * sum((first / name).stat().st_size for name in old)


def test_timers_that_did_not_change_are_not_written_again(made: Fixture) -> None:
    backend = made.backend()
    for key in range(1000):
        backend.event_timers.register(key, key)
    first = made.checkpoint(backend, "first")
    second = made.checkpoint(backend, "second")
    assert sst_files(second) == sst_files(first)
    list(backend.event_timers.pop_due(2000))
    third = made.checkpoint(backend, "third")
    assert list(read_native_sections(third, "uid")) == []


@pytest.mark.parametrize("kind", ["heap", "rocksdb"])
def test_it_can_be_read_as_sections_of_other_key_groups(made: Fixture, kind: str) -> None:
    backend = made.backend()
    fill(backend)
    checkpoint = made.checkpoint(backend)
    parts: list[Any] = []
    for groups in (range(5), range(5, 16)):
        part = make_keyed_backend(kind, "new", 16, groups, made.options if kind == "rocksdb" else None)
        for section in read_native_sections(checkpoint, "new", groups):
            part.load_section(section)
        assert all(key_group(key, 16) in groups for key in part.keys("map"))
        parts.append(part)
    tables, timers = content(backend)
    assert sum(len(part.keys("value")) for part in parts) == len(tables["value"]) == 4
    assert sum(len(part.event_timers) for part in parts) == len(timers[0]) == 4
    assert [part.committed_value("list", "a") for part in parts if key_group("a", 16) in part.key_groups] == [
        list(range(2000))
    ]
    for part in parts:
        if isinstance(part, RocksDBKeyedStateBackend):
            part.close()


def test_other_key_groups_are_loaded_entry_by_entry(made: Fixture) -> None:
    backend = made.backend()
    fill(backend)
    checkpoint = made.checkpoint(backend)
    parts = [made.backend(range(8)), made.backend(range(8, 16))]
    assert [part.load_native(checkpoint) for part in parts] == [False, False]
    keys = [key for part in parts for key in part.keys("value")]
    assert sorted(map(repr, keys)) == sorted(map(repr, backend.keys("value")))
    assert sum(part.number_of_entries() for part in parts) == backend.number_of_entries()
    assert sum(len(part.event_timers) for part in parts) == len(backend.event_timers) == 4


def test_another_number_of_key_groups_is_refused(made: Fixture) -> None:
    backend = made.backend()
    fill(backend)
    checkpoint = made.checkpoint(backend)
    with pytest.raises(StateError, match="has 16 key groups, but operator 'uid' has 32; the number is fixed"):
        made.backend(range(8), max_parallelism=32).load_native(checkpoint)


def test_what_is_no_checkpoint_is_refused(made: Fixture) -> None:
    backend = made.backend()
    fill(backend)
    checkpoint = made.checkpoint(backend)
    with pytest.raises(StateError, match="has state already"):
        backend.load_native(checkpoint)
    next(path for path in checkpoint.iterdir() if path.suffix == ".sst").unlink()
    with pytest.raises(StateError, match="cannot be opened"):
        made.backend().load_native(checkpoint)
    with pytest.raises(StateError, match="cannot be opened"):
        list(read_native_sections(made.directory / "nowhere", "uid"))


def test_a_damaged_file_is_noticed(made: Fixture) -> None:
    """Even by a walk through all entries, which must not take the damage for the end."""
    backend = made.backend()
    state = backend.get_state(VALUE)
    for key in range(5000):
        backend.current_key = key
        state.update(os.urandom(50))
    checkpoint = made.checkpoint(backend)
    (file,) = [path for path in checkpoint.iterdir() if path.suffix == ".sst"]
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.unlink()  # it is a link: the backend's own file stays as it is
    file.write_bytes(data)
    with pytest.raises(StateError, match=r"cannot be read .*Corruption"):
        list(read_native_sections(checkpoint, "uid"))


def test_without_a_log_of_changes_there_is_no_delta(made: Fixture, tmp_path: Path) -> None:
    options = RocksDBOptions(16 << 20, tmp_path / "state", log_changes=False)
    backend = RocksDBKeyedStateBackend("uid", 16, GROUPS, options)
    fill(backend)
    with pytest.raises(StateError, match="changes are not logged"):
        backend.delta_sections()
    backend.commit_epoch()
    backend.native_checkpoint(tmp_path / "checkpoint")
    other = made.backend()
    other.load_native(tmp_path / "checkpoint")
    assert content(other) == content(backend)
    backend.close()
