"""A checkpoint may span many epochs, be in flight while others run, fail, or be gone back to."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headwater.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from headwater.state.heap.backend import HeapKeyedStateBackend
from headwater.state.operator_backend import OperatorStateBackend
from headwater.state.snapshot.section import Section

KEYS = st.integers(0, 3)
NAMESPACES = st.integers(0, 2)
GROUPS = range(8)


def _backend() -> HeapKeyedStateBackend:
    return HeapKeyedStateBackend("uid", 8, GROUPS)


def _content(backend: HeapKeyedStateBackend) -> dict[str, Any]:
    """All that is stored, as plain values. Windows: {namespace: {key: value}}."""
    tables = {name: backend._states[name].store.table for name in ("value", "list", "map", "fold", "elements")}
    return {**deepcopy(tables), "timers": backend.event_timers.timers()}


def _open(backend: HeapKeyedStateBackend) -> tuple[Any, ...]:
    return (
        backend.get_state(ValueStateDescriptor("value")),
        backend.get_state(ListStateDescriptor("list")),
        backend.get_state(MapStateDescriptor("map")),
        backend.get_folded_panes("fold"),
        backend.get_element_panes("elements"),
    )


class CheckpointSpans(RuleBasedStateMachine):
    """The model is a deep copy of everything at each place that state may go back to."""

    @initialize()
    def start(self) -> None:
        self.backend = _backend()
        self.value, self.list, self.map, self.fold, self.elements = _open(self.backend)
        self.durable = self.accepted = _content(self.backend)
        self.chain: list[Section] = []
        self.in_flight: tuple[list[Section], dict[str, Any]] | None = None
        self.backend.begin_epoch()

    @rule(key=KEYS, number=st.integers(0, 9), kind=st.sampled_from(["update", "clear", "in place"]))
    def change_value(self, key: int, number: int, kind: str) -> None:
        self.backend.current_key = key
        if kind == "in place" and isinstance(self.value.value(), list):
            self.value.value().append(number)
        elif kind == "clear":
            self.value.clear()
        else:
            self.value.update([number] if number % 2 else number)

    @rule(key=KEYS, number=st.integers(0, 9), kind=st.sampled_from(["add", "add", "update", "clear"]))
    def change_list(self, key: int, number: int, kind: str) -> None:
        self.backend.current_key = key
        {"add": lambda: self.list.add(number), "update": lambda: self.list.update([number]), "clear": self.list.clear}[
            kind
        ]()

    @rule(key=KEYS, inner=KEYS, number=st.integers(0, 9), kind=st.sampled_from(["put", "put", "remove", "clear"]))
    def change_map(self, key: int, inner: int, number: int, kind: str) -> None:
        self.backend.current_key = key
        if kind == "put":
            self.map.put(inner, number)
        elif kind == "remove":
            self.map.remove(inner)
        else:
            self.map.clear()

    @rule(key=KEYS, namespace=NAMESPACES, number=st.integers(0, 9), kind=st.sampled_from(["fold", "elements"]))
    def add_to_window(self, key: int, namespace: int, number: int, kind: str) -> None:
        if kind == "fold":
            self.fold.reduce([key], [namespace], [number], lambda a, b: a + b)
        else:
            self.elements.append([key], [namespace], [number])

    @rule(key=KEYS, namespace=NAMESPACES, kind=st.sampled_from(["take", "drop", "clear"]))
    def end_window(self, key: int, namespace: int, kind: str) -> None:
        for panes in (self.fold, self.elements):
            if kind == "take":
                panes.take(namespace)
            elif kind == "drop":
                panes.drop(namespace)
            else:
                self.backend.current_key, self.backend.current_namespace = key, namespace
                panes.clear()

    @rule(key=KEYS, at=st.integers(0, 5), kind=st.sampled_from(["register", "register", "delete", "fire"]))
    def change_timer(self, key: int, at: int, kind: str) -> None:
        timers = self.backend.event_timers
        if kind == "fire":
            list(timers.pop_due(at))
        else:
            getattr(timers, kind)(at, key)

    @rule()
    def commit(self) -> None:
        self.backend.commit_epoch()
        self.accepted = _content(self.backend)
        self.backend.begin_epoch()

    @rule()
    def fail_attempt(self) -> None:
        self.backend.rollback_epoch()
        assert _content(self.backend) == self.accepted
        self.backend.begin_epoch()

    @precondition(lambda self: self.in_flight is None)
    @rule(accepted=st.booleans())
    def cut(self, accepted: bool) -> None:
        delta = self.backend.delta_sections()
        if accepted:
            self.backend.commit_epoch(cut=True)
            self.accepted = _content(self.backend)
            self.in_flight = (delta, self.accepted)
        else:
            self.backend.rollback_epoch()
        self.backend.begin_epoch()

    @precondition(lambda self: self.in_flight is not None)
    @rule(completes=st.booleans())
    def end_checkpoint(self, completes: bool) -> None:
        assert self.in_flight is not None
        self.backend.commit_epoch()
        self.accepted = _content(self.backend)
        if completes:
            self.backend.checkpoint_completed()
            self.chain += self.in_flight[0]
            self.durable = self.in_flight[1]
            assert self._restored() == self.durable
        else:
            self.backend.checkpoint_failed()
        self.in_flight = None
        self.backend.begin_epoch()

    @rule()
    def rewind(self) -> None:
        assert self.backend.rewind()
        self.accepted = _content(self.backend)
        assert self.accepted == self.durable
        self.in_flight = None
        self.backend.begin_epoch()

    @invariant()
    def queries_see_the_last_committed_epoch(self) -> None:
        for key in range(4):
            assert self.backend.committed_value("value", key) == self.accepted["value"].get(key)

    def _restored(self) -> dict[str, Any]:
        restored = _backend()
        for section in self.chain:
            restored.load_section(section)
        _open(restored)
        return _content(restored)


CheckpointSpans.TestCase.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
TestCheckpointSpans = CheckpointSpans.TestCase


def test_operator_state_goes_back_to_the_last_checkpoint() -> None:
    backend = OperatorStateBackend("uid")
    items = backend.get_list_state(ListStateDescriptor("items"))
    backend.begin_epoch()
    items.add("a")
    backend.delta_sections()
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    backend.begin_epoch()
    items.add("b")
    backend.commit_epoch()
    assert backend.rewind()
    assert list(items.get()) == ["a"]


@pytest.mark.parametrize("completed", [True, False])
def test_what_open_did_is_not_lost_by_going_back(completed: bool) -> None:
    backend = OperatorStateBackend("uid")
    items = backend.get_list_state(ListStateDescriptor("items"))
    items.add("from open")
    backend.begin_epoch()
    assert len(backend.delta_sections()) == 1
    backend.commit_epoch(cut=True)
    if completed:
        backend.checkpoint_completed()
    assert backend.rewind() is completed
