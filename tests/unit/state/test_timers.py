"""Timers: order, duplicates, undo, snapshots."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headwater.common.errors import StateError
from headwater.state.keys.key_groups import key_group
from headwater.state.snapshot import payload
from headwater.state.snapshot.entries import ValueEntries
from headwater.state.snapshot.layout import StateLayout
from headwater.state.snapshot.section import EVENT_TIMERS, Section
from headwater.state.timers import Timer, TimerQueue


def make_queue() -> TimerQueue:
    return TimerQueue("uid", EVENT_TIMERS, 128)


def restored(sections: list[Section]) -> TimerQueue:
    queue = make_queue()
    for section in sections:
        queue.load_section(section)
    return queue


def test_fires_by_timestamp_then_registration() -> None:
    queue = make_queue()
    for timestamp, key in [(5, "late"), (3, "z"), (3, "a"), (3, None), (4, ("mixed", 1))]:
        queue.register(timestamp, key)
    assert queue.peek() == 3
    assert [key for _, key, _ in queue.pop_due(4)] == ["z", "a", None, ("mixed", 1)]
    assert queue.peek() == 5
    assert len(queue) == 1


def test_a_duplicate_is_a_no_op_and_namespaces_differ() -> None:
    queue = make_queue()
    queue.register(1, "k")
    queue.register(1, "k")
    queue.register(1, "k", "window")
    assert list(queue.pop_due(1)) == [(1, "k", None), (1, "k", "window")]


def test_a_deleted_timer_does_not_fire_and_loses_its_place() -> None:
    queue = make_queue()
    queue.register(1, "a")
    queue.register(1, "b")
    queue.delete(1, "a")
    queue.delete(7, "never set")
    queue.register(1, "a")
    assert [key for _, key, _ in queue.pop_due(1)] == ["b", "a"]


def test_callbacks_may_register_and_delete_while_timers_fire() -> None:
    queue = make_queue()
    for key in ("a", "b", "c"):
        queue.register(1, key)
    fired = []
    for timestamp, key, _ in queue.pop_due(10):
        fired.append((timestamp, key))
        if key == "a":
            queue.delete(1, "b")
            queue.register(5, "again")
            queue.register(11, "not yet")
    assert fired == [(1, "a"), (1, "c"), (5, "again")]
    assert queue.peek() == 11


def test_timers_that_are_pushed_ahead_for_ever_do_not_pile_up() -> None:
    queue = make_queue()
    for timestamp in range(100_000):
        queue.register(timestamp + 60_000, "session")
        queue.delete(timestamp + 59_999, "session")
    assert len(queue) == 1
    assert len(queue._heap) < 200


def test_rollback_brings_back_order_and_numbers() -> None:
    queue = make_queue()
    for key in "abc":
        queue.register(1, key)
    queue.commit(cut=True)
    queue.checkpoint_completed()
    queue.delete(1, "a")
    queue.register(1, "a")
    queue.register(1, "d")
    list(queue.pop_due(1))
    queue.rollback()
    assert [key for _, key, _ in queue.timers()] == ["a", "b", "c"]
    assert queue.delta_sections() == []
    queue.register(1, "e")
    assert [key for _, key, _ in queue.pop_due(1)] == ["a", "b", "c", "e"]


def test_a_timer_that_came_and_went_leaves_no_delta() -> None:
    queue = make_queue()
    queue.register(1, "a")
    list(queue.pop_due(1))
    assert queue.delta_sections() == []


def test_sections_are_in_the_key_groups_of_their_keys() -> None:
    queue = make_queue()
    for key in range(50):
        queue.register(1, key)
    sections = list(queue.full_sections())
    assert [section.key_group for section in sections] == sorted({key_group(key, 128) for key in range(50)})
    assert {section.kind for section in sections} == {EVENT_TIMERS}


def test_ties_of_two_old_partitions_have_one_order_after_every_restore() -> None:
    left, right = make_queue(), make_queue()
    for key in range(20):
        (left if key_group(key, 128) < 64 else right).register(1, key)
    merged = restored([*left.full_sections(), *right.full_sections()])
    other = restored([*right.full_sections(), *left.full_sections()])
    assert merged.timers() == other.timers() and len(merged) == 20
    again = restored(list(merged.full_sections()))
    assert again.timers() == merged.timers()
    assert again._live == merged._live  # the numbers do not drift from restore to restore
    merged.register(1, "new")
    assert merged.timers()[-1] == (1, "new", None)


def test_a_section_of_something_else_is_refused() -> None:
    data = payload.encode(StateLayout("value", False, False), ValueEntries([], []), "uid", "x")
    with pytest.raises(StateError, match="not timers"):
        make_queue().load_section(Section("uid", EVENT_TIMERS, "timers", 0, data))


timestamps = st.integers(0, 8)
timer_keys = st.sampled_from(["a", "b", 3, ("c", 4), None])
namespaces = st.sampled_from([None, "w"])


class TimerMachine(RuleBasedStateMachine):
    """The queue against a list of timers in registration order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = make_queue()
        self.model: list[Timer] = []
        self.committed: list[Timer] = []
        self.chain: list[Section] = []

    @rule(timestamp=timestamps, key=timer_keys, namespace=namespaces)
    def register(self, timestamp: int, key: Any, namespace: Any) -> None:
        self.queue.register(timestamp, key, namespace)
        if (timestamp, key, namespace) not in self.model:
            self.model.append((timestamp, key, namespace))

    @rule(timestamp=timestamps, key=timer_keys, namespace=namespaces)
    def delete(self, timestamp: int, key: Any, namespace: Any) -> None:
        self.queue.delete(timestamp, key, namespace)
        if (timestamp, key, namespace) in self.model:
            self.model.remove((timestamp, key, namespace))

    @rule(up_to=timestamps, again_in=st.none() | st.integers(0, 3))
    def fire(self, up_to: int, again_in: int | None) -> None:
        fired, expected = [], []
        budget = 3
        for timer in self.queue.pop_due(up_to):
            fired.append(timer)
            if again_in is not None and budget:
                budget -= 1
                self.queue.register(timer[0] + again_in, timer[1], timer[2])
        budget = 3
        while due := sorted((timer for timer in self.model if timer[0] <= up_to), key=lambda timer: timer[0]):
            self.model.remove(due[0])
            expected.append(due[0])
            if again_in is not None and budget:
                budget -= 1
                again = (due[0][0] + again_in, due[0][1], due[0][2])
                if again not in self.model:
                    self.model.append(again)
        assert fired == expected

    @rule()
    def commit(self) -> None:
        self.chain += self.queue.delta_sections()
        self.queue.commit(cut=True)
        self.queue.checkpoint_completed()
        self.committed = list(self.model)

    @rule()
    def rollback(self) -> None:
        self.queue.rollback()
        self.model = list(self.committed)

    @rule(full=st.booleans())
    def crash_and_restore(self, full: bool) -> None:
        self.rollback()
        if full:
            self.chain = list(self.queue.full_sections())
        self.queue = restored(self.chain)

    @invariant()
    def agrees(self) -> None:
        assert self.queue.timers() == sorted(self.model, key=lambda timer: timer[0])
        assert self.queue.peek() == min((timer[0] for timer in self.model), default=None)


TestTimerMachine = TimerMachine.TestCase
TestTimerMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@given(st.lists(st.tuples(timestamps, timer_keys), max_size=20))
def test_full_snapshot_keeps_the_order(timers: list[tuple[int, Any]]) -> None:
    queue = make_queue()
    for timestamp, key in timers:
        queue.register(timestamp, key)
    assert list(restored(list(queue.full_sections())).pop_due(100)) == list(queue.pop_due(100))
