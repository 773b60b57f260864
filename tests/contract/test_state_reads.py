"""What other threads read of every backend: now, as of the last durable checkpoint, and as of a pinned one.

A model keeps a copy of all state at each durable checkpoint. Random programs change state in every way there is, end
epochs, cut, complete and fail checkpoints, roll back, go back, pin and unpin; after each step all reads must agree.
"""

from __future__ import annotations

import copy
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.common.query_error import QueryError, QueryProblem
from headwater.state.backends import make_keyed_backend
from headwater.state.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from headwater.state.heap.store import ABSENT
from headwater.state.readable_backend import ReadableBackend
from headwater.state.rocksdb.options import RocksDBOptions

_SHM = Path("/dev/shm")
KEYS = ("a", 1, (2, "b"))
WINDOWS = (0, 10)


def make(kind: str) -> ReadableBackend[Any]:
    options = RocksDBOptions(8 << 20, _SHM if _SHM.is_dir() else None)
    made = make_keyed_backend(kind, "uid", 16, range(16), options if kind == "rocksdb" else None)
    assert isinstance(made, ReadableBackend)
    return made


@pytest.fixture(params=["heap", "rocksdb"])
def backend(request: pytest.FixtureRequest) -> Iterator[ReadableBackend[Any]]:
    made = make(request.param)
    yield made
    if hasattr(made, "close"):
        made.close()


def in_place(older: list[int], newer: list[int]) -> list[int]:
    """A reduce function that changes what it was given."""
    older += newer
    return older


def queryable(descriptor: Any) -> Any:
    descriptor.set_queryable(f"q-{descriptor.name}")
    return descriptor


class Program:
    """A backend, and a model of what is in it: now, after the last accepted epoch, and at durable epochs."""

    def __init__(self, backend: ReadableBackend[Any], seed: int) -> None:
        self.backend = backend
        self.random = random.Random(seed)
        self.value: Any = backend.get_state(queryable(ValueStateDescriptor("value")))
        self.list: Any = backend.get_state(ListStateDescriptor("list"))
        self.map: Any = backend.get_state(MapStateDescriptor("map"))
        self.reducing: Any = backend.get_state(ReducingStateDescriptor("reducing", in_place))
        self.panes: Any = backend.get_folded_panes("panes")
        self.elements: Any = backend.get_element_panes("elements")
        self.windows: Any = backend.get_namespaced_state(ListStateDescriptor("windows"))
        self.now: dict[str, dict[Any, Any]] = {
            name: {} for name in ("value", "list", "map", "reducing", "panes", "elements", "windows")
        }
        self.accepted = copy.deepcopy(self.now)
        self.in_flight: Any = None
        self.epoch = -1
        self.durable = {-1: copy.deepcopy(self.now)}
        self.pins: list[int] = []
        backend.begin_epoch()

    # --- changes

    def change(self) -> None:
        r, now = self.random, self.now
        key, window, number = r.choice(KEYS), r.choice(WINDOWS), r.randrange(100)
        self.backend.current_key, self.backend.current_namespace = key, window
        what = r.randrange(15)
        if what in (0, 1):
            value: Any = r.choice([number, (number, "x"), [number], {"n": [number]}, f"text {number}"])
            self.value.update(value)
            now["value"][key] = copy.deepcopy(value)
        elif what == 2:
            self.value.clear()
            now["value"].pop(key, None)
        elif what == 3:
            self.list.add([number])
            now["list"].setdefault(key, []).append([number])
        elif what == 4:
            self.list.update([number, number])
            now["list"][key] = [number, number]
        elif what == 5:
            self.list.clear()
            now["list"].pop(key, None)
        elif what in (6, 7):
            self.map.put(number % 4, number)
            now["map"].setdefault(key, {})[number % 4] = number
        elif what == 8:
            self.map.remove(number % 4)
            now["map"].get(key, {}).pop(number % 4, None)
            if not now["map"].get(key, True):
                del now["map"][key]
        elif what == 9:
            self.map.clear()
            now["map"].pop(key, None)
        elif what == 10:
            self.reducing.add([number])
            now["reducing"].setdefault(key, []).append(number)
        elif what == 11:
            self.panes.aggregate([key], [window], [number], list, lambda value, so_far: [*so_far, value])
            now["panes"].setdefault((key, window), []).append(number)
        elif what == 12:
            self.elements.append([key], [window], [number])
            now["elements"].setdefault((key, window), []).append(number)
        elif what == 13:
            self.windows.add(number)
            now["windows"].setdefault((key, window), []).append(number)
        else:
            panes, name = r.choice([(self.panes, "panes"), (self.elements, "elements")])
            panes.take(window)
            for pair in [pair for pair in now[name] if pair[1] == window]:
                del now[name][pair]

    def end_epoch(self) -> None:
        r, backend = self.random, self.backend
        self.epoch += 1
        if r.random() < 0.2:
            backend.rollback_epoch()
            self.now = copy.deepcopy(self.accepted)
        else:
            cut = self.in_flight is None and r.random() < 0.5
            if cut:
                backend.delta_sections()
                backend.cut_epoch = self.epoch
            backend.commit_epoch(cut=cut)
            self.accepted = copy.deepcopy(self.now)
            if cut:
                self.in_flight = (self.epoch, copy.deepcopy(self.now))
        if self.in_flight is not None and r.random() < 0.5:
            if r.random() < 0.75:
                backend.checkpoint_completed()
                epoch, state = self.in_flight
                self.durable[epoch] = state
            else:
                backend.checkpoint_failed()
            self.in_flight = None
        elif r.random() < 0.05 and backend.rewind():
            self.now = copy.deepcopy(self.durable[max(self.durable)])
            self.accepted, self.in_flight = copy.deepcopy(self.now), None
        backend.begin_epoch()

    def pin_or_unpin(self) -> None:
        if self.pins and self.random.random() < 0.5:
            self.backend.unpin(self.pins.pop(self.random.randrange(len(self.pins))))
        elif len(self.pins) < 3:
            self.pins.append(self.backend.pin())
            assert self.pins[-1] == max(self.durable)

    # --- reads

    def check(self) -> None:
        for epoch in {max(self.durable), *self.pins}:
            for name, expected in self.durable[epoch].items():
                assert self.all_of(name, epoch) == expected, (name, epoch)

    def all_of(self, name: str, epoch: int | None) -> dict[Any, Any]:
        """What a scan finds, which must be what look-ups find."""
        backend = self.backend
        namespaced = name in ("panes", "elements", "windows")
        found = {}
        for stored in backend.candidates(name, epoch):
            key, namespace = stored if namespaced else (stored, None)
            value = backend.read(name, key, namespace, epoch)
            if value is not ABSENT:
                found[stored] = copy.deepcopy(value)
        if namespaced and backend.finds_namespaces(name):
            pairs = [(key, each) for key in KEYS for each in backend.namespaces_to_try(name, key, epoch)]
            assert set(found) <= set(pairs)
        return found


@pytest.mark.parametrize("seed", range(8))
def test_reads_see_one_durable_checkpoint(backend: ReadableBackend[Any], seed: int) -> None:
    program = Program(backend, seed)
    completed = 0
    for _ in range(80):
        for _ in range(program.random.randrange(6)):
            program.change()
        if program.random.random() < 0.4:
            program.check()
        program.end_epoch()
        if program.random.random() < 0.3:
            program.pin_or_unpin()
        program.check()
        completed = len(program.durable)
    assert completed > 5  # the program did what it is to test


@pytest.mark.parametrize("seed", range(5))
def test_live_reads_see_the_newest_value_that_cannot_change_under_them(
    backend: ReadableBackend[Any], seed: int
) -> None:
    program = Program(backend, seed)
    for _ in range(60):
        program.change()
        for key, value in program.now["value"].items():
            expected = value if not isinstance(value, list | dict) else None
            if expected is not None:
                assert backend.read("value", key) == expected
        if program.random.random() < 0.3:
            program.end_epoch()


def test_an_epoch_that_nobody_holds_is_gone(backend: ReadableBackend[Any]) -> None:
    program = Program(backend, 1)
    epoch = backend.pin()
    backend.unpin(epoch)
    backend.cut_epoch = 5
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    with pytest.raises(QueryError, match=r"epoch -1 .* can no longer be read") as caught:
        backend.read("value", "a", None, epoch)
    assert caught.value.problem is QueryProblem.EPOCH_GONE
    assert program.backend.read("value", "a", None, 5) is ABSENT


def test_readers_in_other_threads_never_see_half_an_epoch(backend: ReadableBackend[Any]) -> None:
    """Each epoch writes its number everywhere. Whoever reads an epoch must find that number, or nothing."""
    value: Any = backend.get_state(queryable(ValueStateDescriptor("value")))
    boxed: Any = backend.get_state(ValueStateDescriptor("boxed"))
    entries: Any = backend.get_state(MapStateDescriptor("map"))
    panes: Any = backend.get_folded_panes("panes")
    torn: list[Any] = []
    reads = 0
    done = threading.Event()

    def read() -> None:
        nonlocal reads
        while not done.is_set():
            epoch = backend.pin()
            try:
                found = [
                    backend.read("value", 1, None, epoch),
                    backend.read("boxed", 1, None, epoch),
                    backend.read("map", 1, None, epoch),
                    backend.read("panes", 1, 0, epoch),
                ]
            finally:
                backend.unpin(epoch)
            expected = [ABSENT] * 4 if epoch < 0 else [epoch, [epoch, epoch], {0: epoch, 1: epoch}, epoch]
            if found != expected:
                torn.append((epoch, found))
                return
            reads += 1

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for epoch in range(400):
        backend.begin_epoch()
        backend.current_key = 1
        value.update(epoch)
        boxed.update([epoch, epoch])
        for each in range(2):
            entries.put(each, epoch)
        panes.reduce([1], [0], [epoch], lambda older, newer: newer)
        backend.cut_epoch = epoch
        backend.commit_epoch(cut=True)
        backend.checkpoint_completed()
    done.set()
    for thread in threads:
        thread.join()
    assert not torn
    assert reads > 20
