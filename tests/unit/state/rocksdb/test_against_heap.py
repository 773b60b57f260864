"""The RocksDB backend in step with the one on the heap: whatever happens, both give the same."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from headwater.common.time import Time
from headwater.state.backends import make_keyed_backend
from headwater.state.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from headwater.state.rocksdb import cell as rocksdb_cell
from headwater.state.rocksdb import store as rocksdb_store
from headwater.state.rocksdb.options import RocksDBOptions
from headwater.state.snapshot.section import Section
from headwater.state.ttl.config import StateTtlConfig

GROUPS = range(8)
KEYS = st.sampled_from(["a", 1, True, ("t", 2.0)])  # 1 and True are one key
NAMESPACES = st.integers(-1, 1)
VALUES = st.one_of(st.integers(0, 9), st.lists(st.integers(0, 9), min_size=1, max_size=2), st.text(max_size=30))
# Backends differ in when they look for what has expired, and may.
TTL = StateTtlConfig.new_builder(Time.milliseconds(3)).disable_cleanup_in_background().build()

_IN_MEMORY = Path("/dev/shm")
OPTIONS = RocksDBOptions(8 << 20, _IN_MEMORY if _IN_MEMORY.is_dir() else None)


def with_ttl(descriptor: Any) -> Any:
    descriptor.enable_time_to_live(TTL)
    return descriptor


class Side:
    """One backend with its states."""

    def __init__(self, kind: str, sections: list[Section] = []) -> None:  # noqa: B006 - never changed
        self.backend: Any = make_keyed_backend(kind, "uid", 8, GROUPS, OPTIONS if kind == "rocksdb" else None)
        for section in sections:
            self.backend.load_section(section)
        self.value = self.backend.get_state(ValueStateDescriptor("value"))
        self.list = self.backend.get_state(ListStateDescriptor("list"))
        self.map = self.backend.get_state(MapStateDescriptor("map"))
        self.windows = self.backend.get_namespaced_state(ReducingStateDescriptor("windows", lambda a, b: a + b))
        self.value_ttl = self.backend.get_state(with_ttl(ValueStateDescriptor("value_ttl")))
        self.list_ttl = self.backend.get_state(with_ttl(ListStateDescriptor("list_ttl")))
        self.map_ttl = self.backend.get_state(with_ttl(MapStateDescriptor("map_ttl")))
        self.fold = self.backend.get_folded_panes("fold")
        self.elements = self.backend.get_element_panes("elements")

    def content(self) -> dict[str, Any]:
        """All that is stored, by way of a full snapshot, with what has expired."""
        tables: dict[str, Any] = {}
        loaded = make_keyed_backend("heap", "uid", 8, GROUPS)
        for section in self.backend.full_sections():
            loaded.load_section(section)
        for name in loaded.state_names():
            table = loaded._states[name].store.table  # type: ignore[attr-defined]
            if table:
                tables[name] = table
        return {**tables, "timers": loaded.event_timers.timers(), "entries": self.backend.number_of_entries()}

    def close(self) -> None:
        if hasattr(self.backend, "close"):
            self.backend.close()


FOCUSES = ("value", "list", "map", "windows", "panes", "timers")


def about(name: str) -> Any:
    """Each run is about one or two shapes: so that epochs and checkpoints meet again on the same entries."""
    return precondition(lambda self: name in self.focus)


class InStep(RuleBasedStateMachine):
    focus: tuple[str, ...] = ()

    @initialize(focus=st.tuples(st.sampled_from(FOCUSES), st.sampled_from(FOCUSES)))
    def start(self, focus: tuple[str, ...]) -> None:
        self.focus = focus
        self.sides = (Side("heap"), Side("rocksdb"))
        self.chains: tuple[list[Section], list[Section]] = ([], [])
        self.in_flight: tuple[list[Section], list[Section]] | None = None
        self.now = 0
        self.begin()

    def begin(self) -> None:
        for side in self.sides:
            side.backend.begin_epoch()
            side.backend.processing_time_ms = self.now

    def both(self, key: Any, namespace: Any, use: Any) -> None:
        found = []
        for side in self.sides:
            side.backend.current_key, side.backend.current_namespace = key, namespace
            found.append(use(side))
        assert found[0] == found[1]

    @about("value")
    @rule(key=KEYS, value=VALUES, kind=st.sampled_from(["read", "update", "update", "clear", "in place"]))
    def use_value(self, key: Any, value: Any, kind: str) -> None:
        def use(side: Side) -> Any:
            for state in (side.value, side.value_ttl):
                if kind == "clear":
                    state.clear()
                elif kind == "update":
                    state.update(copy.deepcopy(value))
                elif kind == "in place" and isinstance(state.value(), list):
                    state.value().append(0)
            return None if kind == "update" else (side.value.value(), side.value_ttl.value())

        self.both(key, None, use)

    @about("list")
    @rule(key=KEYS, value=VALUES, kind=st.sampled_from(["read", "add", "add", "update", "clear", "in place"]))
    def use_list(self, key: Any, value: Any, kind: str) -> None:
        def use(side: Side) -> Any:
            for state in (side.list, side.list_ttl):
                if kind == "clear":
                    state.clear()
                elif kind == "add":
                    state.add(copy.deepcopy(value))
                elif kind == "update":
                    state.update([copy.deepcopy(value)] * 2)
                elif kind == "in place":
                    for element in state.get():
                        if isinstance(element, list):
                            element.append(0)
            return None if kind == "add" else (side.list.get(), side.list_ttl.get())

        self.both(key, None, use)

    @about("map")
    @rule(
        key=KEYS,
        inner=KEYS,
        value=VALUES,
        kind=st.sampled_from(["get", "put", "put", "remove", "clear", "all", "empty"]),
    )
    def use_map(self, key: Any, inner: Any, value: Any, kind: str) -> None:
        def use(side: Side) -> Any:
            results: list[Any] = []
            for state in (side.map, side.map_ttl):
                if kind == "clear":
                    state.clear()
                elif kind == "put":
                    state.put(inner, copy.deepcopy(value))
                elif kind == "remove":
                    state.remove(inner)
                elif kind == "get":
                    found = state.get(inner)
                    results += [copy.deepcopy(found), state.contains(inner)]
                    if isinstance(found, list):
                        found.append(0)
                elif kind == "all":
                    results += [dict(state.items()), sorted(map(repr, state.values()))]
                else:
                    results.append(state.is_empty())
            return results

        self.both(key, None, use)

    @about("windows")
    @rule(
        key=KEYS, namespace=NAMESPACES, number=st.integers(0, 9), kind=st.sampled_from(["add", "add", "get", "clear"])
    )
    def use_windows(self, key: Any, namespace: int, number: int, kind: str) -> None:
        def use(side: Side) -> Any:
            if kind == "add":
                return side.windows.add(number)
            return side.windows.clear() if kind == "clear" else side.windows.get()

        self.both(key, namespace, use)

    @about("panes")
    @rule(keys=st.lists(KEYS, min_size=1, max_size=4), namespace=NAMESPACES, number=st.integers(0, 9))
    def add_to_panes(self, keys: list[Any], namespace: int, number: int) -> None:
        def use(side: Side) -> None:
            namespaces = [namespace] * len(keys)
            side.fold.aggregate(keys, namespaces, [number] * len(keys), list, lambda value, known: [*known, value][-3:])
            side.elements.append(keys, namespaces, [number] * len(keys))

        self.both(keys[0], namespace, use)

    @about("panes")
    @rule(key=KEYS, namespace=NAMESPACES, kind=st.sampled_from(["take", "peek", "peek", "drop", "clear"]))
    def use_panes(self, key: Any, namespace: int, kind: str) -> None:
        def use(side: Side) -> Any:
            results: list[Any] = []
            for panes in (side.fold, side.elements):
                if kind == "take":
                    results.append(dict(zip(*panes.take(namespace), strict=True)))
                elif kind == "peek":
                    results.append(dict(panes.peek(namespace)))
                elif kind == "drop":
                    panes.drop(namespace)
                else:
                    panes.clear()
                results.append(set(panes.namespaces()))
            return results

        self.both(key, namespace, use)

    @about("timers")
    @rule(key=KEYS, at=st.integers(0, 5), kind=st.sampled_from(["register", "register", "delete", "fire"]))
    def use_timers(self, key: Any, at: int, kind: str) -> None:
        def use(side: Side) -> Any:
            timers = side.backend.event_timers
            return list(timers.pop_due(at)) if kind == "fire" else getattr(timers, kind)(at, key)

        self.both(key, None, use)

    @rule(key=KEYS)
    def clear_current_key(self, key: Any) -> None:
        self.both(key, 0, lambda side: side.backend.clear_current_key())

    @rule(keys=st.lists(KEYS))
    def prefetch(self, keys: list[Any]) -> None:
        self.sides[1].backend.prefetch(keys)

    @rule(name=st.sampled_from(["value", "list", "map", "windows", "value_ttl", "fold", "elements"]), key=KEYS)
    def query(self, name: str, key: Any) -> None:
        self.both(key, 0, lambda side: side.backend.committed_value(name, key, 0))

    @rule(name=st.sampled_from(["value", "list", "map", "windows", "value_ttl", "fold", "elements"]))
    def list_keys(self, name: str) -> None:
        self.both(None, 0, lambda side: set(side.backend.keys(name)))

    @rule(passes=st.integers(0, 2))
    def commit(self, passes: int) -> None:
        for side in self.sides:
            side.backend.commit_epoch()
        self.now += passes
        self.begin()

    @rule()
    def fail_attempt(self) -> None:
        for side in self.sides:
            side.backend.rollback_epoch()
        self.begin()
        self.compare()

    @precondition(lambda self: self.in_flight is None)
    @rule()
    def cut(self) -> None:
        self.in_flight = tuple(side.backend.delta_sections() for side in self.sides)  # type: ignore[assignment]
        for side in self.sides:
            side.backend.commit_epoch(cut=True)
        self.begin()

    @precondition(lambda self: self.in_flight is not None)
    @rule(completed=st.booleans())
    def end_checkpoint(self, completed: bool) -> None:
        for side in self.sides:
            side.backend.commit_epoch()
            if completed:
                side.backend.checkpoint_completed()
            else:
                side.backend.checkpoint_failed()
        if completed:
            assert self.in_flight is not None
            for chain, sections in zip(self.chains, self.in_flight, strict=True):
                chain += sections
        self.in_flight = None
        self.begin()

    @rule(crossed=st.booleans())
    def crash_and_restore(self, crossed: bool) -> None:
        for side in self.sides:
            side.close()
        chains = self.chains[::-1] if crossed else self.chains  # either backend's snapshots, in either backend
        self.sides = (Side("heap", chains[0]), Side("rocksdb", chains[1]))
        self.in_flight = None
        for side in self.sides:
            side.backend.processing_time_ms = self.now
        self.compare()
        self.begin()

    @rule()
    def compare(self) -> None:
        assert self.sides[0].content() == self.sides[1].content()

    def teardown(self) -> None:
        if hasattr(self, "sides"):
            self.compare()
            self.crash_and_restore(crossed=True)
            for side in self.sides:
                side.close()


@pytest.fixture(params=["roomy", "tight"])
def memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tight: hardly anything stays in the cache, and lists of more than a few elements are sealed into pieces."""
    if request.param == "tight":
        monkeypatch.setattr(rocksdb_store, "_MIN_CACHED", 1)
        monkeypatch.setattr(OPTIONS.memory, "_object_bytes", 0)
        monkeypatch.setattr(rocksdb_cell, "_SEAL_BYTES", 40)
        monkeypatch.setattr(rocksdb_store, "PIECE_BYTES", 1)
        monkeypatch.setitem(OPTIONS.__dict__, "timers_in_memory", 2)
    yield


@pytest.mark.usefixtures("memory")
def test_both_backends_stay_in_step() -> None:
    case = InStep.TestCase
    case.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
    case().runTest()
