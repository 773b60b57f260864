"""Entries of each shape: what changes, what is counted, converted and left out. The backends' contract has the rest."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.common.errors import StateError
from headwater.state.snapshot.entries import (
    Counted,
    Entries,
    ListEntries,
    MapEntries,
    ValueEntries,
    check_base,
    entries_of,
)

VALUES = ValueEntries(["a", "b"], [1, 2], ["c"])
LISTS = ListEntries(["a", "b"], [0, 2], [[1], [2, 3]], ["c"])
MAPS = MapEntries(["a", "b"], [{"x": 1}, {"y": 2}], [None, ["z"]], ["c"])


def numbers(counted: Counted) -> dict[Any, int]:
    return {key: len(things) for key, things in counted.items()}


@pytest.mark.parametrize(
    ("kind", "entries"),
    [
        ("value", VALUES),
        ("reducing", VALUES),
        ("aggregating", VALUES),
        ("folded panes", VALUES),
        ("timers", VALUES),
        ("list", LISTS),
        ("element panes", LISTS),
        ("map", MAPS),
    ],
)
def test_columns_make_the_same_entries(kind: str, entries: Entries) -> None:
    again = entries_of(kind, entries.columns())
    assert again == entries and type(again) is type(entries)
    assert entries.columns()[0] is entries.keys and entries.columns()[-1] is entries.deleted
    assert list(entries.all_keys()) == ["a", "b", "c"]


@pytest.mark.parametrize("columns", [([], []), ([], [], [], [], []), ([], [], [], "no list")])
def test_other_columns_are_refused(columns: Any) -> None:
    with pytest.raises(ValueError, match="columns, expected the 4 of ListEntries"):
        entries_of("list", columns)
    with pytest.raises(ValueError, match="unknown kind 'tree'"):
        entries_of("tree", columns)


def test_entries_that_only_delete_are_entries() -> None:
    assert not ValueEntries([], []) and not ListEntries.of_lists([], []) and not MapEntries.of_maps([], [])
    assert ValueEntries([], [], ["a"]) and ValueEntries(["a"], [0])


class NeverEqual:
    def __eq__(self, other: object) -> bool:
        raise AssertionError("values must not be compared")


def test_changed_values_without_a_value_are_deleted_if_there_was_one() -> None:
    never = NeverEqual()
    found = ValueEntries.of_changed(["a", "b", "c"], [never, None, None], {"b"}.__contains__)
    assert (found.keys, found.deleted) == (["a"], ["b"]) and found.values[0] is never
    assert ValueEntries.of_changed(["a"], [0], lambda _: True) == ValueEntries(["a"], [0])


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (ValueEntries(["a"], [1], ["c"]), ValueEntries(["a"], [-1], ["c"])),
        (ListEntries(["a"], [2], [[1, 2]], ["c"]), ListEntries(["a"], [2], [[-1, -2]], ["c"])),
        (
            MapEntries(["a", "b"], [{"x": 1}, {"y": 2}], [None, ["z"]], ["c"]),
            MapEntries(["a", "b"], [{"x": -1}, {"y": -2}], [None, ["z"]], ["c"]),
        ),
    ],
)
def test_each_value_is_converted(entries: Entries, expected: Entries) -> None:
    assert entries.converted(lambda value: -value) == expected
    with_dates = entries.converted(lambda value: (value, 77))
    assert with_dates.converted(lambda value: -value, dated=True) == expected.converted(lambda value: (value, 77))


def test_what_is_not_kept_is_left_out_with_its_key_if_nothing_remains() -> None:
    assert ValueEntries(["a", "b"], [1, 2]).only(lambda value: value > 1) == ValueEntries(["b"], [2])
    lists = ListEntries.of_lists(["a", "b"], [[1], [1, 2]])
    assert lists.only(lambda value: value > 1) == ListEntries.of_lists(["b"], [[2]])
    maps = MapEntries.of_maps(["a", "b"], [{"x": 1}, {"x": 1, "y": 2}])
    assert maps.only(lambda value: value > 1) == MapEntries.of_maps(["b"], [{"y": 2}])


@pytest.mark.parametrize("entries", [VALUES, LISTS, MAPS])
def test_keys_are_counted_over_a_chain(entries: Entries) -> None:
    counted: Counted = {"b": (None,), "c": (None,), "d": (None,)}
    entries.count_keys(counted)
    assert numbers(counted) == {"a": 1, "b": 1, "d": 1}


def test_elements_of_lists_are_counted_over_a_chain() -> None:
    counted: Counted = {}
    ListEntries.of_lists([None, "gone"], [[1, 2, 3], [4]]).count_elements(counted)
    assert numbers(counted) == {None: 3, "gone": 1}
    ListEntries([None], [2], [[7, 8, 9]], ["gone"]).count_elements(counted)
    assert numbers(counted) == {None: 5}


def test_entries_of_maps_are_counted_over_a_chain() -> None:
    counted: Counted = {}
    MapEntries.of_maps([None, "gone"], [{"x": 1, "y": 2}, {"x": 1}]).count_elements(counted)
    assert numbers(counted) == {None: 2, "gone": 1}
    MapEntries([None], [{"x": 5, "z": 3}], [["y"]], ["gone"]).count_elements(counted)
    assert counted == {None: {"x", "z"}}
    MapEntries.of_maps([None], [{"new": 1}]).count_elements(counted)
    assert numbers(counted) == {None: 1}


def test_a_delta_without_what_it_builds_on_is_refused() -> None:
    check_base(3, 3, "a list")
    with pytest.raises(StateError, match="a delta adds to a window of 3 elements, but 2 were restored before it"):
        check_base(3, 2, "a window")
