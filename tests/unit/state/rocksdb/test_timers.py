"""Timers in RocksDB, of which only a few may be in memory, in step with those on the heap."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headwater.common.errors import StateError, StateMigrationError
from headwater.state.backends import make_keyed_backend
from headwater.state.keys.key_groups import key_group
from headwater.state.rocksdb import timers as rocksdb_timers
from headwater.state.rocksdb.backend import RocksDBKeyedStateBackend
from headwater.state.rocksdb.database import prefix
from headwater.state.rocksdb.keys import encode_key
from headwater.state.rocksdb.native import read_native_sections
from headwater.state.rocksdb.options import RocksDBOptions
from headwater.state.rocksdb.timer_entries import TimerEntries
from headwater.state.snapshot.section import Section
from tests.unit.state.changing_module import changing_module

GROUPS = range(8)
KEYS = st.sampled_from(["a", 1, 1.0, 2, 3, 4, ("t", None), frozenset([2])])  # 1 and 1.0 are one key
NAMESPACES = st.sampled_from([None, None, None, ("w", 2.0)])
TIMES = st.one_of(st.integers(0, 9), st.sampled_from([-1, 1 << 62, 1 << 63, 1 << 90, -(1 << 90)]))

_IN_MEMORY = Path("/dev/shm")
OPTIONS = RocksDBOptions(8 << 20, _IN_MEMORY if _IN_MEMORY.is_dir() else None, timers_in_memory=4)
ON_HEAP = replace(OPTIONS, timers_in_memory=None)


@pytest.fixture(autouse=True)
def little_is_unsettled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rocksdb_timers, "_SETTLE_AT", 5)


def make(kind: str, groups: range = GROUPS, sections: Any = (), options: RocksDBOptions = OPTIONS) -> Any:
    backend = make_keyed_backend(kind, "uid", 8, groups, options if kind == "rocksdb" else None)
    for section in sections:
        if section.key_group in groups:
            backend.load_section(section)
    return backend


def close(*backends: Any) -> None:
    for backend in backends:
        if isinstance(backend, RocksDBKeyedStateBackend):
            backend.close()


@pytest.fixture
def backend() -> Iterator[Any]:
    made = make("rocksdb")
    yield made
    close(made)


class InStep(RuleBasedStateMachine):
    """The same happens to both backends; the one on the heap is right."""

    def __init__(self) -> None:
        super().__init__()
        self.heap: Any = make("heap")
        self.rocks: Any = make("rocksdb")
        self.chains: tuple[list[Section], list[Section]] = ([], [])
        self.in_flight: tuple[list[Section], list[Section]] | None = None
        self.begin()

    @property
    def sides(self) -> tuple[Any, Any]:
        return self.heap, self.rocks

    def begin(self) -> None:
        for side in self.sides:
            side.begin_epoch()

    @rule(at=TIMES, key=KEYS, namespace=NAMESPACES)
    def register(self, at: int, key: Any, namespace: Any) -> None:
        for side in self.sides:
            side.event_timers.register(at, key, namespace)

    @rule(at=st.integers(0, 9), number=st.integers(3, 9))
    def register_many(self, at: int, number: int) -> None:
        for side in self.sides:
            for key in range(number):
                side.event_timers.register(at + key % 3, key)

    @rule(at=TIMES, key=KEYS, namespace=NAMESPACES, before=st.booleans(), again=st.booleans())
    def delete(self, at: int, key: Any, namespace: Any, before: bool, again: bool) -> None:
        for side in self.sides:
            if before:
                side.event_timers.register(at, key, namespace)
            side.event_timers.delete(at, key, namespace)
            if again:
                side.event_timers.register(at, key, namespace)

    @rule(
        up_to=TIMES,
        again_in=st.none() | st.integers(0, 3),
        deletes=st.none() | st.tuples(TIMES, KEYS),
        stops_after=st.integers(1, 20),
    )
    def fire(self, up_to: int, again_in: int | None, deletes: tuple[int, Any] | None, stops_after: int) -> None:
        fired: list[list[Any]] = [[], []]
        for side, seen in zip(self.sides, fired, strict=True):
            budget = 4
            for timer in islice(side.event_timers.pop_due(up_to), stops_after):
                seen.append(timer)
                if again_in is not None and budget:
                    budget -= 1
                    side.event_timers.register(timer[0] + again_in, timer[1], timer[2])
                if deletes is not None:
                    side.event_timers.delete(*deletes)
        assert fired[1] == fired[0]

    @rule()
    def look(self) -> None:
        assert self.rocks.event_timers.peek() == self.heap.event_timers.peek()

    @rule()
    def count(self) -> None:
        assert len(self.rocks.event_timers) == len(self.heap.event_timers)

    @rule()
    def commit(self) -> None:
        for side in self.sides:
            side.commit_epoch()
        self.begin()

    @rule(after_delta=st.booleans())
    def fail_attempt(self, after_delta: bool) -> None:
        for side in self.sides:
            if after_delta:
                side.delta_sections()
            side.rollback_epoch()
        self.begin()

    @precondition(lambda self: self.in_flight is None)
    @rule()
    def cut(self) -> None:
        self.in_flight = (self.heap.delta_sections(), self.rocks.delta_sections())
        for side in self.sides:
            side.commit_epoch(cut=True)
        self.begin()

    @precondition(lambda self: self.in_flight is not None)
    @rule(completed=st.booleans())
    def end_checkpoint(self, completed: bool) -> None:
        for side in self.sides:
            side.commit_epoch()
            side.checkpoint_completed() if completed else side.checkpoint_failed()
        if completed:
            assert self.in_flight is not None
            for chain, sections in zip(self.chains, self.in_flight, strict=True):
                chain += sections
        self.in_flight = None
        self.begin()

    @rule(crossed=st.booleans())
    def crash_and_restore(self, crossed: bool) -> None:
        chains = self.chains[::-1] if crossed else self.chains
        self.go_on_with(make("heap", sections=chains[0]), make("rocksdb", sections=chains[1]))

    @rule(as_sections=st.booleans())
    def restore_native(self, as_sections: bool) -> None:
        """Of all that was committed, on top of which nothing has happened."""
        for side in self.sides:
            side.rollback_epoch()
        sections = list(self.heap.full_sections())
        native = self.rocks.new_native_checkpoint()
        rocks = make("rocksdb")
        try:
            if as_sections:
                for section in read_native_sections(native, "uid"):
                    rocks.load_section(section)
            else:
                assert rocks.load_native(native)
        finally:
            shutil.rmtree(native)
        self.chains = (sections, list(rocks.full_sections()))
        self.go_on_with(make("heap", sections=sections), rocks)

    @rule(at=st.integers(1, 7), native=st.booleans(), uncommitted=st.booleans())
    def rescale(self, at: int, native: bool, uncommitted: bool) -> None:
        if native or not uncommitted:
            for side in self.sides:
                side.rollback_epoch()
        parts: list[list[Any]] = []
        directory = self.rocks.new_native_checkpoint() if native else None
        for kind, side in zip(("heap", "rocksdb"), self.sides, strict=True):
            sections = list(side.full_sections())
            parts.append([make(kind, groups, () if native else sections) for groups in (range(at), range(at, 8))])
            for part in parts[-1] if native else ():
                if kind == "rocksdb":
                    part.load_native(directory)
                else:
                    for section in read_native_sections(directory, "uid", part.key_groups):  # type: ignore[arg-type]
                        part.load_section(section)
        for heap, rocks in zip(*parts, strict=True):
            assert rocks.event_timers.timers() == heap.event_timers.timers()
            assert all(key_group(key, 8) in rocks.key_groups for _, key, _ in rocks.event_timers.timers())
        self.chains = tuple([s for part in each for s in part.full_sections()] for each in parts)  # type: ignore[assignment]
        close(*parts[1])
        if directory is not None:
            shutil.rmtree(directory)
        self.go_on_with(make("heap", sections=self.chains[0]), make("rocksdb", sections=self.chains[1]))

    def go_on_with(self, heap: Any, rocks: Any) -> None:
        close(self.rocks)
        self.heap, self.rocks, self.in_flight = heap, rocks, None
        self.begin()

    @invariant()
    def little_is_in_memory(self) -> None:
        queue = self.rocks.event_timers
        committed = [timer for timer in queue._live if timer not in queue._undo]
        assert len(committed) <= 4

    @rule()
    def compare(self) -> None:
        assert self.rocks.event_timers.timers() == self.heap.event_timers.timers()

    def teardown(self) -> None:
        self.compare()
        self.crash_and_restore(crossed=True)
        self.compare()
        close(self.rocks)


def test_both_backends_fire_the_same_in_the_same_order() -> None:
    case = InStep.TestCase
    case.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
    case().runTest()


def fill(backend: Any, number: int = 50) -> list[Any]:
    """Commit timers, and return them in the order in which they fire."""
    for index in range(number):
        backend.event_timers.register(index * 7 % 10, f"k{index % 16}", index)
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    found: list[Any] = backend.event_timers.timers()
    assert len(found) == number
    return found


def test_few_timers_stay_out_of_the_database(backend: Any) -> None:
    expected = fill(backend, 4)
    assert not backend.event_timers.stored
    fill(backend, 50)
    assert backend.event_timers.stored and not backend.processing_timers.stored
    assert backend.event_timers.timers()[:3] == [expected[0], (0, "k10", 10), (0, "k4", 20)]


@pytest.mark.parametrize("to_heap", [False, True])
def test_the_setting_can_change_between_two_runs(to_heap: bool) -> None:
    """What was written while all timers were on the heap is what older versions have written, too."""
    before, after = (OPTIONS, ON_HEAP) if to_heap else (ON_HEAP, OPTIONS)
    old, new, from_sections = (make("rocksdb", options=each) for each in (before, after, after))
    expected = fill(old)
    native = old.new_native_checkpoint()
    assert new.load_native(native) is not to_heap, "the files are used as they are, unless there are timers in them"
    for section in old.full_sections():
        from_sections.load_section(section)
    for each in (new, from_sections):
        assert getattr(each.event_timers, "stored", False) is not to_heap
        assert len(each.event_timers) == 50
        assert list(each.event_timers.pop_due(9)) == expected
    shutil.rmtree(native)
    close(old, new, from_sections)


def test_partitions_that_come_together_keep_their_orders() -> None:
    parts = [make("rocksdb", groups) for groups in (range(3), range(3, 8))]
    for number in range(80):
        key = f"k{number}"
        parts[key_group(key, 8) >= 3].event_timers.register(number % 4, key)
    expected = [fired for part in parts for fired in part.event_timers.timers()]
    for part in parts:
        part.commit_epoch()
        assert part.event_timers.stored
    sections = [section for part in parts for section in part.full_sections()]
    for kind in ("heap", "rocksdb"):
        together = make(kind, sections=sections)
        found = list(together.event_timers.pop_due(9))
        assert [timer for timer in found if key_group(timer[1], 8) < 3] == expected[: len(parts[0].event_timers)]
        assert [timer for timer in found if key_group(timer[1], 8) >= 3] == expected[len(parts[0].event_timers) :]
        assert [timer[0] for timer in found] == sorted(timer[0] for timer in found)
        close(together)
    close(*parts)


def test_timers_that_did_not_change_are_not_written_again(backend: Any) -> None:
    fill(backend, 500)

    def files() -> set[str]:
        directory = backend.new_native_checkpoint()
        names = {path.name for path in directory.iterdir() if path.suffix == ".sst"}
        shutil.rmtree(directory)
        return names

    first = files()
    assert list(islice(backend.event_timers.pop_due(9), 100))
    backend.rollback_epoch()
    assert files() == first


def test_many_in_one_epoch_that_come_and_go_leave_nothing_behind(backend: Any) -> None:
    fill(backend)
    timers = backend.event_timers
    list(timers.pop_due(4))
    backend.commit_epoch()
    for number in range(2000):
        timers.register(9, number)
        timers.delete(9, number)
        timers.delete(8, number)
    assert len(timers._undo) <= 20
    for number in range(2000):
        timers.register(5, number)
    assert len(list(timers.pop_due(5))) == 2005
    assert len(timers._undo) <= 25, "those that were there before"


def test_keys_whose_class_has_changed_are_refused(backend: Any) -> None:
    with changing_module() as module:
        module.define("class Key(NamedTuple):\n  id: int")
        for number in range(9):
            backend.event_timers.register(5, module.make(f"Key({number})"))
        backend.commit_epoch()
        native = backend.new_native_checkpoint()
        same = make("rocksdb")
        assert same.load_native(native)
        assert list(same.event_timers.pop_due(5)) == [(5, module.make(f"Key({number})"), None) for number in range(9)]
        again = same.new_native_checkpoint()
        module.define("class Key(NamedTuple):\n  id: int\n  region: str = ''")
        for directory in (native, again):
            other = make("rocksdb")
            with pytest.raises(StateMigrationError, match=r"changing.Key, which has changed.*A key must stay as it is"):
                other.load_native(directory)
            close(other)
            shutil.rmtree(directory)
        close(same)


def test_only_databases_with_timers_are_closed_to_older_versions(backend: Any) -> None:
    fill(backend, 4)
    for expected, number in ((1, 4), (2, 50)):
        fill(backend, number)
        shutil.rmtree(backend.new_native_checkpoint())
        assert backend.database.facts()["format"] == expected
    backend.database.set_facts({"format": 3})
    with pytest.raises(StateError, match=r"has format 3, expected one of \(1, 2\)"):
        backend.database.facts()


@given(st.integers() | st.sampled_from([-(1 << 63), (1 << 63) - 1]), st.integers() | st.text() | KEYS, NAMESPACES)
def test_bytes_of_a_timer_are_those_of_a_key(timestamp: int, key: Any, namespace: Any) -> None:
    timer = (timestamp, key, namespace)
    encoded, says_all = encode_key(timer)
    address, address_says_all = TimerEntries("uid", "event_timers", 128)._address(timer)
    assert address == prefix(key_group(key, 128), 0xFFF0, 0) + encoded
    assert address_says_all == says_all


@given(st.lists(st.integers(-(1 << 200), 1 << 200) | st.integers(-3, 3) | st.sampled_from([1 << 63, -(1 << 63) - 1])))
def test_bytes_of_timestamps_compare_as_timestamps(timestamps: list[int]) -> None:
    entries = TimerEntries("uid", "event_timers", 128)
    assert sorted(timestamps, key=lambda each: entries._place(each, 1)) == sorted(timestamps)
