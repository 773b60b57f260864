"""List state of operators, dealt out to another number of partitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.errors import StateError
from headwater.state.descriptors import ListStateDescriptor, MapStateDescriptor
from headwater.state.operator_backend import OperatorStateBackend
from headwater.state.snapshot.redistribution import deal_list_state
from headwater.state.snapshot.section import Section


def chain_of(*versions: list[int], name: str = "l", uid: str = "op") -> list[Section]:
    """The sections of one partition whose list was each of `versions` at the end of an epoch."""
    backend = OperatorStateBackend(uid)
    sections: list[Section] = []
    for version in versions:
        backend.begin_epoch()
        state = backend.get_list_state(ListStateDescriptor(name))
        held = state.get()
        if version[: len(held)] == held:
            state.add_all(version[len(held) :])
        else:
            state.update(version)
        sections += backend.delta_sections()
        backend.commit_epoch(cut=True)
        backend.checkpoint_completed()
    return sections


def loaded(sections: list[Section], uid: str = "op", name: str = "l") -> list[int]:
    backend = OperatorStateBackend(uid)
    for section in sections:
        backend.load_section(section)
    return backend.get_list_state(ListStateDescriptor(name)).get()


@given(lists=st.lists(st.lists(st.integers(), max_size=8), max_size=6), parallelism=st.integers(1, 7))
def test_every_element_has_exactly_one_new_owner(lists: list[list[int]], parallelism: int) -> None:
    chains = [chain_of(elements) for elements in lists]
    joined = [element for elements in lists for element in elements]
    dealt = [loaded(deal_list_state(chains, "op", i, parallelism)) for i in range(parallelism)]
    assert dealt == [joined[i::parallelism] for i in range(parallelism)]


def test_deltas_are_put_together_before_they_are_dealt() -> None:
    chains = [chain_of([1], [1, 2], [1, 2, 3]), chain_of([4, 5], [6]), chain_of([7], [])]
    assert loaded(deal_list_state(chains, "op", 0, 1)) == [1, 2, 3, 6]
    assert loaded(deal_list_state(chains, "op", 1, 2)) == [2, 6]


def test_states_are_dealt_one_by_one_and_may_get_another_uid() -> None:
    chains = [chain_of([1, 2]) + chain_of([9], name="other")]
    sections = deal_list_state(chains, "renamed", 0, 2)
    assert {section.uid for section in sections} == {"renamed"}
    assert loaded(sections, "renamed") == [1]
    assert loaded(sections, "renamed", "other") == [9]
    assert [section.name for section in deal_list_state(chains, "renamed", 1, 2)] == ["l"]


def test_nothing_gives_nothing() -> None:
    assert deal_list_state([], "op", 0, 3) == []
    assert deal_list_state([[], chain_of()], "op", 2, 3) == []


def test_what_cannot_be_dealt_is_refused() -> None:
    backend = OperatorStateBackend("op")
    backend.get_broadcast_state(MapStateDescriptor("rules")).put("a", 1)
    with pytest.raises(StateError, match="'rules' of operator 'op' is of kind 'broadcast'"):
        deal_list_state([list(backend.full_sections())], "op", 0, 1)
    with pytest.raises(StateError, match="no partition 3: it has 3"):
        deal_list_state([], "op", 3, 3)
