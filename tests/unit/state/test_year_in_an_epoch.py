"""What comes and goes within one epoch leaves nothing behind: a year of it must not need a year of memory."""

from __future__ import annotations

import pytest

from headwater.state.descriptors import MapStateDescriptor, ValueStateDescriptor
from headwater.state.heap.backend import HeapKeyedStateBackend

MANY = 50_000


@pytest.fixture
def backend() -> HeapKeyedStateBackend:
    backend = HeapKeyedStateBackend("uid", 8, range(8))
    backend.begin_epoch()
    return backend


def test_timers(backend: HeapKeyedStateBackend) -> None:
    timers = backend.event_timers
    timers.register(-1, "stays")
    for at in range(MANY):
        timers.register(at, "key")
        if at % 2:
            assert list(timers.pop_due(at)) == ([(-1, "stays", None)] if at == 1 else []) + [
                (at - 1, "key", None),
                (at, "key", None),
            ]
    assert len(timers._undo) <= 1
    assert backend.delta_sections() == []


def test_map_entries(backend: HeapKeyedStateBackend) -> None:
    backend.current_key = "key"
    state = backend.get_state(MapStateDescriptor("map"))
    state.put("old", 1)
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    backend.begin_epoch()
    state.put("old", 2)
    for number in range(MANY):
        state.put(number, number)
        state.remove(number)
    assert len(backend._states["map"].store.undo["key"]) < MANY // 2
    assert backend.committed_value("map", "key") == {"old": 1}
    backend.rollback_epoch()
    assert dict(state.items()) == {"old": 1}


def test_values(backend: HeapKeyedStateBackend) -> None:
    state = backend.get_state(ValueStateDescriptor("value"))
    for number in range(MANY):
        backend.current_key = number
        state.update(number)
        if number % 100:
            state.clear()
    store = backend._states["value"].store
    assert MANY // 100 <= len(store.undo) < MANY // 2
    assert len(store.table) == MANY // 100
    backend.rollback_epoch()
    assert not store.table
