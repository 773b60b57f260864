"""Events that wait for the watermark: their order, also after two partitions became one."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.operators.cep.waiting_events import STATE, WaitingEvents
from headwater.state.descriptors import MapStateDescriptor
from headwater.state.heap.backend import HeapKeyedStateBackend


def waiting(backend: HeapKeyedStateBackend, compare: Any = None) -> WaitingEvents:
    def use_key(event: Any) -> None:
        backend.current_key = event["key"]

    return WaitingEvents(backend, backend.get_state(MapStateDescriptor(STATE)), use_key, compare)


@pytest.mark.parametrize("compare", [None, lambda one, two: 0])
def test_events_of_two_partitions_may_have_the_same_number_and_timestamp(compare: Any) -> None:
    """A partition that takes over two others has events of both, numbered apart. dicts cannot be compared."""
    backend = HeapKeyedStateBackend("cep", 1, range(1))
    state: Any = backend.get_state(MapStateDescriptor(STATE))
    for key in "ab":
        backend.current_key = key
        for number in (7, 3):
            state.put(number, (10, {"key": key, "number": number}))
    restored = waiting(backend, compare)
    restored.add([10, 10], [{"key": "a", "number": 100}, {"key": "b", "number": 100}])
    due = [item[-1] for item in restored.due(10)]
    for key in "ab":
        assert [event["number"] for event in due if event["key"] == key] == [3, 7, 100]
    assert backend.number_of_entries() == 0


def test_arrival_decides_between_events_of_one_timestamp() -> None:
    events = waiting(HeapKeyedStateBackend("cep", 1, range(1)))
    events.add([5, 4, 5], [{"key": "k", "n": n} for n in (1, 2, 3)])
    assert [item[-1]["n"] for item in events.due(4)] == [2]
    events.add([5, 5], [{"key": "k", "n": n} for n in (4, 5)])
    events.store()
    assert [item[-1]["n"] for item in events.due(5)] == [1, 3, 4, 5]
