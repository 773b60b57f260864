"""Value state in arrays does what value state in a dict does, whatever happens to epochs and checkpoints."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from headwater.state.backends import make_keyed_backend
from headwater.state.descriptors import ValueStateDescriptor
from headwater.state.heap import columns
from headwater.state.heap.backend import HeapKeyedStateBackend
from headwater.state.heap.columns import HeapColumns
from headwater.state.heap.store import ABSENT
from headwater.state.many_keys import update_all, values_of
from headwater.state.snapshot.packed import packed_array, packed_rows

MANY: list[list[Any]] = [
    [*range(12), "text", (1, None), None],
    [*range(-6, 12), 2**61, -(2**63)],
    [(number % 3, -number) for number in range(15)],
    [*range(12), 2**63],  # some seeds find the one that is no int64 late
]
GROUPS = 8


class Pairs:
    """Rows of a number and anything."""

    kinds = (np.int64, object)

    def rows(self, columns: Sequence[np.ndarray]) -> list[Any]:
        return list(zip(columns[0].tolist(), columns[1].tolist(), strict=True))

    def columns(self, rows: Sequence[Any]) -> list[np.ndarray]:
        numbers = np.array([row[0] for row in rows], np.int64)
        return [numbers, np.fromiter((row[1] for row in rows), object, len(rows))]

    def packed(self, columns: Sequence[np.ndarray]) -> Any:
        return packed_rows([packed_array(columns[0]), columns[1].tolist()])


def made() -> HeapKeyedStateBackend:
    backend = make_keyed_backend("heap", "uid", GROUPS, range(GROUPS))
    assert isinstance(backend, HeapKeyedStateBackend)
    return backend


class Both:
    """A state twice: in a dict, and in arrays."""

    def __init__(self, keys: list[Any]) -> None:
        self.keys = keys
        self.backends = [made(), made()]
        self.plain: Any = self.backends[0].get_state(ValueStateDescriptor("v"))
        self.backends[1].get_state(ValueStateDescriptor("v"))
        arrays = self.backends[1].as_columns("v", Pairs())
        assert arrays is not None
        self.arrays: HeapColumns = arrays

    def change(self, values: dict[Any, Any]) -> None:
        keys = list(values)
        update_all(
            self.backends[0], self.plain, keys, values_of(self.backends[0], self.plain, keys), list(values.values())
        )
        before = self.arrays.read(keys)
        rows = [(0, None) if value is None else value for value in values.values()]
        alive = np.array([value is not None for value in values.values()])
        self.arrays.write(before, alive, Pairs().columns(rows))

    def check(self, epochs: set[int]) -> None:
        one, other = self.backends
        assert set(self.plain.keys_stored()) == set(self.arrays.keys_stored())
        assert one.number_of_entries() == other.number_of_entries() == self.arrays.number()
        for key in self.keys:
            one.current_key = other.current_key = key
            assert self.plain.value() == self.arrays.value()
            assert one.committed_value("v", key) == other.committed_value("v", key)
            for epoch in epochs:
                assert one.read("v", key, epoch=epoch) == other.read("v", key, epoch=epoch)
        for epoch in epochs:
            found = [_keys_at(each, epoch) for each in self.backends]
            assert found[0] == found[1]

    def deltas(self) -> list[Any]:
        return [each.delta_sections() for each in self.backends]


def _keys_at(backend: HeapKeyedStateBackend, epoch: int) -> set[Any]:
    return {key for key in backend.candidates("v", epoch) if backend.read("v", key, epoch=epoch) is not ABSENT}


@pytest.mark.parametrize("seed", range(30))
def test_arrays_do_what_a_dict_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_SMALL", 4)
    monkeypatch.setattr(columns, "_PIECES_AT_MOST", 3)
    chance = random.Random(seed)
    keys = MANY[seed % len(MANY)]
    both = Both(keys)
    saved: list[list[Any]] = [[], []]  # the sections of durable checkpoints
    in_flight: list[list[Any]] | None = None
    pinned: int | None = None
    for epoch in range(40):
        for each in both.backends:
            each.begin_epoch()
        for _ in range(chance.randint(0, 3)):
            some = chance.sample(keys, chance.randint(1, 6))
            both.change({key: chance.choice([None, (epoch, "a"), (chance.randint(0, 99), (1, "b"))]) for key in some})
        readable = {both.backends[0].durable_epoch} | ({pinned} if pinned is not None else set())
        both.check(readable)
        if chance.random() < 0.3:
            for each in both.backends:
                each.rollback_epoch()
        else:
            cut = in_flight is None and chance.random() < 0.4
            if cut:
                in_flight = both.deltas()
            for each in both.backends:
                each.cut_epoch = epoch
                each.commit_epoch(cut=cut)
        both.check(readable)
        if in_flight is not None and chance.random() < 0.5:
            kept = chance.random() < 0.7
            for each, sections, delta in zip(both.backends, saved, in_flight, strict=True):
                if kept:
                    each.checkpoint_completed()
                    sections += delta
                else:
                    each.checkpoint_failed()
            in_flight = None
        if chance.random() < 0.1:
            for each in both.backends:
                each.rewind()
            in_flight = None
        if pinned is None and chance.random() < 0.2:
            pinned, _ = (each.pin() for each in both.backends)
        elif pinned is not None and chance.random() < 0.2:
            for each in both.backends:
                each.unpin(pinned)
            pinned = None
        both.check({both.backends[0].durable_epoch} | ({pinned} if pinned is not None else set()))
    for each in both.backends:
        each.rewind()
    both.check(set())
    whole = list(both.backends[1].full_sections())
    for sections in (*saved, whole):
        restored = made()
        for section in sections:
            restored.load_section(section)
        state = restored.get_state(ValueStateDescriptor("v"))
        assert values_of(restored, state, keys) == values_of(both.backends[0], both.plain, keys)
        arrays = restored.as_columns("v", Pairs())
        assert arrays is not None and set(arrays.keys_stored()) == set(both.plain.keys_stored())


def test_dead_rows_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_SMALL", 4)
    backend = made()
    backend.get_state(ValueStateDescriptor("v"))
    arrays = backend.as_columns("v", Pairs())
    assert arrays is not None
    for epoch in range(50):
        backend.begin_epoch()
        keys = [(epoch, number) for number in range(10)]
        arrays.write(arrays.read(keys), np.ones(10, np.bool_), Pairs().columns([(1, "x")] * 10))
        if epoch:
            arrays.remove(arrays.read([(epoch - 1, number) for number in range(10)]))
        backend.commit_epoch(cut=True)
        backend.checkpoint_completed()
    assert sorted(arrays.keys_stored()) == [(49, number) for number in range(10)]
    assert len(arrays._index) <= 40


def test_a_state_with_changes_or_with_ttl_stays_as_it_is() -> None:
    backend = made()
    state = backend.get_state(ValueStateDescriptor("v"))
    backend.begin_epoch()
    backend.current_key = 1
    state.update((1, "a"))
    backend.commit_epoch()
    assert backend.as_columns("v", Pairs()) is None
