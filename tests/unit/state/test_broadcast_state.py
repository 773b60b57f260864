"""Broadcast state: a map per partition with a life in epochs, and the view that cannot change it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.errors import StateError
from headwater.state.api import BroadcastState, ReadOnlyBroadcastState
from headwater.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from headwater.state.operator_backend import OperatorStateBackend
from headwater.state.snapshot.section import BROADCAST, Section
from headwater.state.ttl.config import StateTtlConfig

RULES = MapStateDescriptor("rules")


def restored(*chains: list[Section]) -> OperatorStateBackend:
    backend = OperatorStateBackend("uid")
    for chain in chains:
        for section in chain:
            backend.load_section(section)
    return backend


def entries(backend: OperatorStateBackend) -> dict[Any, Any]:
    return dict(backend.get_broadcast_state(RULES).items())


def test_it_is_a_map_and_both_kinds_of_broadcast_state() -> None:
    backend = OperatorStateBackend("uid")
    state = backend.get_broadcast_state(RULES)
    assert isinstance(state, BroadcastState)
    assert backend.get_broadcast_state(MapStateDescriptor("rules")) is state
    state["limit"] = 10
    state.put_all({"country": "pt", "gone": 1})
    del state["gone"]
    assert (state["limit"], "gone" in state, sorted(state)) == (10, False, ["country", "limit"])
    view = backend.get_read_only_broadcast_state(RULES)
    assert isinstance(view, ReadOnlyBroadcastState) and not isinstance(view, BroadcastState)
    assert (view["limit"], "gone" in view, sorted(view)) == (10, False, ["country", "limit"])
    assert sorted(view.items(), key=str) == [("country", "pt"), ("limit", 10)]
    assert (view.get("none"), view.is_empty(), len(view.values())) == (None, False, 2)  # type: ignore[arg-type]
    state.clear()
    assert view.is_empty() and state.is_empty()


@pytest.mark.parametrize(
    "change",
    [
        lambda view: view.put(1, 2),
        lambda view: view.put_all({1: 2}),
        lambda view: view.remove(1),
        lambda view: view.clear(),
        lambda view: view.__setitem__(1, 2),
        lambda view: view.__delitem__(1),
    ],
)
def test_the_read_only_view_says_where_to_change_it(change: Any) -> None:
    view = OperatorStateBackend("uid").get_read_only_broadcast_state(RULES)
    with pytest.raises(StateError, match=r"'rules', which is read-only here.*process_broadcast_element"):
        change(view)


def test_epochs_deltas_and_roll_back() -> None:
    backend = OperatorStateBackend("uid")
    state = backend.get_broadcast_state(RULES)
    chain: list[Section] = []
    for epoch in range(3):
        backend.begin_epoch()
        state.put(epoch, {"limit": epoch})
        state.remove(epoch - 2)
        chain += backend.delta_sections()
        backend.commit_epoch(cut=True)
        backend.checkpoint_completed()
    backend.begin_epoch()
    state.clear()
    state.put("lost", 1)
    assert backend.committed_broadcast("rules") == {1: {"limit": 1}, 2: {"limit": 2}}
    backend.rollback_epoch()
    assert entries(backend) == {1: {"limit": 1}, 2: {"limit": 2}}
    assert {section.kind for section in chain} == {BROADCAST}
    for sections in (chain, list(backend.full_sections())):
        assert entries(restored(sections)) == {1: {"limit": 1}, 2: {"limit": 2}}


def test_only_put_changes_a_value() -> None:
    backend = OperatorStateBackend("uid")
    state = backend.get_broadcast_state(RULES)
    state.put("a", {"limit": 1})
    chain = backend.delta_sections()
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    backend.begin_epoch()
    assert backend.get_read_only_broadcast_state(RULES).get("a") == {"limit": 1}
    assert backend.delta_sections() == []
    state["a"]["limit"] = 2  # type: ignore[index]
    backend.get_read_only_broadcast_state(RULES).items()[0][1]["limit"] = 2  # type: ignore[index]
    assert backend.delta_sections() == [] and state["a"] == {"limit": 1}
    state["a"] = rule = {"limit": 2}
    rule["limit"] = 3
    chain += backend.delta_sections()
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    assert entries(restored(chain)) == {"a": {"limit": 2}}


def test_what_was_put_before_the_first_epoch_outlives_its_roll_back() -> None:
    backend = OperatorStateBackend("uid")
    state = backend.get_broadcast_state(RULES)
    state.put("default", 1)
    backend.begin_epoch()
    state.put("lost", 2)
    backend.rollback_epoch()
    backend.begin_epoch()
    sections = backend.delta_sections()
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    assert entries(restored(sections)) == {"default": 1}


def test_cleared_before_the_epoch_is_restored_as_cleared() -> None:
    first = OperatorStateBackend("uid")
    first.get_broadcast_state(RULES).put("a", 1)
    chain = first.delta_sections()
    second = restored(chain)
    second.get_broadcast_state(RULES).clear()
    second.begin_epoch()
    chain += second.delta_sections()
    assert entries(restored(chain)) == {}


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 9)), max_size=4), max_size=6), st.data()
)
def test_chains_of_several_partitions_give_the_same_as_one(epochs: list[list[tuple[int, Any]]], data: Any) -> None:
    chains: list[list[Section]] = [[], [], []]
    model: dict[int, Any] = {}
    backends = [OperatorStateBackend("uid") for _ in chains]
    for changes in epochs:
        for key, value in changes:
            model[key] = value
            if value is None:
                del model[key]
        for backend, chain in zip(backends, chains, strict=True):
            backend.begin_epoch()
            state = backend.get_broadcast_state(RULES)
            for key, value in changes:
                if value is None:
                    state.remove(key)
                else:
                    state.put(key, value)
            if data.draw(st.booleans(), label="full snapshot"):
                chain[:] = backend.full_sections()
            else:
                chain += backend.delta_sections()
            backend.commit_epoch(cut=True)
            backend.checkpoint_completed()
    assert entries(restored(*chains)) == model


def test_names_and_descriptors_are_checked() -> None:
    backend = OperatorStateBackend("uid")
    backend.get_list_state(ListStateDescriptor("taken"))
    with pytest.raises(StateError, match="'taken' of operator 'uid' is a list state, but is asked for as a broadcast"):
        backend.get_broadcast_state(MapStateDescriptor("taken"))
    with pytest.raises(StateError, match="needs a MapStateDescriptor"):
        backend.get_broadcast_state(ValueStateDescriptor("v"))  # type: ignore[arg-type]
    descriptor = MapStateDescriptor("ttl")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(1000).build())
    with pytest.raises(StateError, match="TTL"):
        backend.get_read_only_broadcast_state(descriptor)
