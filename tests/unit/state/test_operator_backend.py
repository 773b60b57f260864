"""Non-keyed list state."""

from __future__ import annotations

import pytest

from headwater.common.errors import StateError
from headwater.state.descriptors import ListStateDescriptor, ValueStateDescriptor
from headwater.state.operator_backend import OperatorStateBackend
from headwater.state.snapshot.section import Section
from headwater.state.ttl.config import StateTtlConfig


def restored(sections: list[Section]) -> OperatorStateBackend:
    backend = OperatorStateBackend("uid")
    for section in sections:
        backend.load_section(section)
    return backend


def test_epochs_deltas_and_restore() -> None:
    backend = OperatorStateBackend("uid")
    state = backend.get_list_state(ListStateDescriptor("offsets"))
    assert backend.get_list_state(ListStateDescriptor("offsets")) is state
    chain: list[Section] = []
    for epoch in range(3):
        backend.begin_epoch()
        state.add(epoch)
        chain += backend.delta_sections()
        backend.commit_epoch(cut=True)
        backend.checkpoint_completed()
    backend.begin_epoch()
    state.update(["lost"])
    assert backend.committed_list("offsets") == [0, 1, 2]
    backend.rollback_epoch()
    assert state.get() == [0, 1, 2]
    assert all(section.kind == "operator" and section.key_group == -1 for section in chain)
    for sections in (chain, list(backend.full_sections())):
        assert restored(sections).get_list_state(ListStateDescriptor("offsets")).get() == [0, 1, 2]


def test_clearing_is_part_of_the_delta() -> None:
    backend = OperatorStateBackend("uid")
    state = backend.get_list_state(ListStateDescriptor("l"))
    state.update([1])
    chain = backend.delta_sections()
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    state.clear()
    chain += backend.delta_sections()
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    assert restored(chain).committed_list("l") == []
    assert backend.delta_sections() == []


def test_what_was_set_before_the_first_epoch_outlives_its_roll_back() -> None:
    backend = OperatorStateBackend("uid")
    state = backend.get_list_state(ListStateDescriptor("l"))
    state.add("initial")
    backend.begin_epoch()
    state.add("lost")
    backend.rollback_epoch()
    assert state.get() == ["initial"]
    backend.begin_epoch()
    state.add("kept")
    sections = backend.delta_sections()
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    assert restored(sections).committed_list("l") == ["initial", "kept"]
    backend.begin_epoch()
    assert backend.delta_sections() == []
    assert backend.number_of_entries() == 2


def test_only_lists_without_ttl() -> None:
    backend = OperatorStateBackend("uid")
    with pytest.raises(StateError, match="ListStateDescriptor"):
        backend.get_list_state(ValueStateDescriptor("v"))  # type: ignore[arg-type]
    descriptor = ListStateDescriptor("l")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(1000).build())
    with pytest.raises(StateError, match="TTL"):
        backend.get_list_state(descriptor)


def test_state_of_another_operator_is_refused() -> None:
    backend = OperatorStateBackend("other")
    backend.get_list_state(ListStateDescriptor("l")).add(1)
    with pytest.raises(StateError, match="'uid' was given state 'l' of operator 'other'"):
        restored(list(backend.full_sections()))
