"""Panes: folded values and elements per window and key, their epochs and their snapshots."""

from __future__ import annotations

import operator
from itertools import repeat
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.common.errors import StateError
from headwater.state.heap.backend import HeapKeyedStateBackend

NAME = "panes"
UID = "window"


def backend() -> HeapKeyedStateBackend:
    return HeapKeyedStateBackend(UID, 8, range(8))


def contents(panes: Any) -> dict[int, dict[str, Any]]:
    return {namespace: dict(panes.peek(namespace)) for namespace in panes.namespaces()}


def folded() -> tuple[HeapKeyedStateBackend, Any]:
    state = backend()
    return state, state.get_folded_panes(NAME)


def elements() -> tuple[HeapKeyedStateBackend, Any]:
    state = backend()
    return state, state.get_element_panes(NAME)


def test_reduce_folds_each_record_into_its_pane() -> None:
    _, panes = folded()
    panes.reduce("abaa", [0, 0, 0, 10], [1, 2, 3, 4], operator.add)
    assert contents(panes) == {0: {"a": 4, "b": 2}, 10: {"a": 4}}


def test_aggregate_creates_an_accumulator_per_pane() -> None:
    _, panes = folded()
    panes.aggregate("aba", repeat(5), [1, 2, 3], list, lambda value, so_far: [*so_far, value])
    assert contents(panes) == {5: {"a": [1, 3], "b": [2]}}


def test_append_keeps_the_order() -> None:
    _, panes = elements()
    panes.append("aba", [0, 0, 0], [1, 2, 3])
    assert contents(panes) == {0: {"a": [1, 3], "b": [2]}}


@pytest.mark.parametrize("make", [folded, elements])
def test_what_is_taken_is_gone(make) -> None:
    state, panes = make()
    add(panes, "ab", 0, [1, 2])
    keys, values = panes.take(0)
    assert keys == ["a", "b"]
    assert values == ([1, 2] if make is folded else [[1], [2]])
    assert panes.take(0) == ([], [])
    panes.drop(0)
    assert state.number_of_entries() == 0


def add(panes: Any, keys: str, namespace: int, values: list[Any]) -> None:
    if hasattr(panes, "append"):
        panes.append(keys, repeat(namespace), values)
    else:
        panes.reduce(keys, repeat(namespace), values, operator.add)


def test_a_value_that_changes_in_place_is_restored() -> None:
    state, panes = folded()
    panes.reduce("a", [0], [[1]], operator.iadd)
    state.commit_epoch(cut=True)
    state.checkpoint_completed()
    panes.reduce("a", [0], [[2]], operator.iadd)
    assert contents(panes) == {0: {"a": [1, 2]}}
    assert state.committed_value(NAME, "a", 0) == [1]
    state.rollback_epoch()
    assert contents(panes) == {0: {"a": [1]}}


@pytest.mark.parametrize("make", [folded, elements])
def test_who_takes_a_value_may_change_it(make) -> None:
    state, panes = make()
    add(panes, "a", 0, [[1]])
    state.commit_epoch(cut=True)
    state.checkpoint_completed()
    (value,) = panes.take(0)[1]
    value.append(99)
    if make is elements:
        value[0].append(99)
    state.rollback_epoch()
    assert contents(panes) == {0: {"a": [1] if make is folded else [[1]]}}


def test_who_takes_elements_may_change_those_that_were_there_before() -> None:
    state, panes = elements()
    add(panes, "a", 0, [[1]])
    state.commit_epoch(cut=True)
    state.checkpoint_completed()
    add(panes, "a", 0, [[2]])
    (taken,) = panes.take(0)[1]
    taken[0].append(99)
    state.rollback_epoch()
    assert contents(panes) == {0: {"a": [[1]]}}


def test_appending_writes_only_what_was_appended() -> None:
    state, panes = elements()
    add(panes, "a" * 2000, 0, list(range(2000)))
    state.commit_epoch(cut=True)
    state.checkpoint_completed()
    add(panes, "a", 0, [7])
    (section,) = state.delta_sections()
    assert len(section.payload) < 300


def test_a_pane_that_came_and_went_leaves_no_trace() -> None:
    state, panes = folded()
    add(panes, "abc", 0, [1, 2, 3])
    panes.take(0)
    assert state.delta_sections() == []


def test_a_delta_without_what_it_adds_to_is_refused() -> None:
    state, panes = elements()
    add(panes, "a", 0, [1])
    state.commit_epoch(cut=True)
    state.checkpoint_completed()
    add(panes, "a", 0, [2])
    other = backend()
    other.get_element_panes(NAME)
    with pytest.raises(StateError, match="an earlier snapshot of the chain is missing"):
        other.load_section(state.delta_sections()[0])


def test_the_two_kinds_are_told_apart() -> None:
    state, panes = folded()
    add(panes, "a", 0, [1])
    with pytest.raises(StateError, match="is namespaced folded panes state"):
        state.get_element_panes(NAME)


@pytest.mark.parametrize("make", [folded, elements])
def test_all_of_a_key_can_be_cleared(make) -> None:
    state, panes = make()
    add(panes, "ab", 0, [1, 2])
    add(panes, "a", 10, [3])
    state.commit_epoch(cut=True)
    state.checkpoint_completed()
    before = contents(panes)
    state.current_key = "a"
    state.clear_current_key()
    assert set(contents(panes)) == {0}
    assert state.keys(NAME) == ["b"]
    state.rollback_epoch()
    assert contents(panes) == before


# -- any sequence of changes, epochs and restores ---------------------------------------------------------------------

step = st.one_of(
    st.tuples(st.just("add"), st.text("abcd", min_size=1, max_size=6), st.integers(0, 3), st.integers(1, 9)),
    st.tuples(st.just("take"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["commit", "rollback"])),
)


def apply(model: dict[int, dict[str, Any]], change: tuple[Any, ...], in_lists: bool) -> None:
    if change[0] == "take":
        model.pop(change[1], None)
        return
    _, keys, namespace, number = change
    pane = model.setdefault(namespace, {})
    for key in keys:
        pane[key] = [*pane.get(key, []), number] if in_lists else pane.get(key, 0) + number


def copied(model: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {namespace: dict(pane) for namespace, pane in model.items()}


@pytest.mark.parametrize("in_lists", [False, True])
@given(script=st.lists(step, max_size=30))
@settings(max_examples=80, deadline=None)
def test_epochs_and_snapshots(in_lists: bool, script: list[tuple[Any, ...]]) -> None:
    state, panes = elements() if in_lists else folded()
    model: dict[int, dict[str, Any]] = {}
    committed: dict[int, dict[str, Any]] = {}
    chain: list[Any] = []
    for change in script:
        if change[0] == "commit":
            chain += state.delta_sections()
            state.commit_epoch(cut=True)
            state.checkpoint_completed()
            committed = copied(model)
        elif change[0] == "rollback":
            state.rollback_epoch()
            model = copied(committed)
        elif change[0] == "take":
            assert dict(zip(*panes.take(change[1]), strict=True)) == model.get(change[1], {})
            apply(model, change, in_lists)
        else:
            add(panes, change[1], change[2], [change[3]] * len(change[1]))
            apply(model, change, in_lists)
        assert contents(panes) == model
        for key in "abcd":
            for namespace in range(4):
                assert state.committed_value(NAME, key, namespace) == committed.get(namespace, {}).get(key)
    assert contents(restored(chain, in_lists)) == committed
    chain = list(state.full_sections())
    assert contents(restored(chain, in_lists)) == model


def restored(sections: list[Any], in_lists: bool) -> Any:
    state = backend()
    for section in sections:
        state.load_section(section)
    return state.get_element_panes(NAME) if in_lists else state.get_folded_panes(NAME)


def test_pairs_are_counted_and_found_without_being_listed() -> None:
    state, panes = folded()
    panes.reduce("abc", [0, 0, 10], [1, 2, 3], operator.add)
    pairs = panes.keys_stored()
    assert not isinstance(pairs, list)
    assert sorted(pairs) == [("a", 0), ("b", 0), ("c", 10)]
    assert len(pairs) == state.number_of_entries() == 3
    assert ("c", 10) in pairs and ("c", 0) not in pairs and "c" not in pairs
    panes.drop(0)
    assert len(pairs) == 1
