"""Numbers of keys: integers in arrays, others in a dict."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from headwater.state.heap import key_index
from headwater.state.heap.key_index import DictIndex, IntegerIndex, IntegerKeys, KeyIndex, index_of
from headwater.state.keys.key_groups import key_group
from headwater.state.snapshot.packed import unpacked


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_keys_get_numbers_in_order_of_coming(width: int) -> None:
    random = np.random.default_rng(width)
    known: dict[Any, int] = {}
    index: KeyIndex | None = None
    for size in (1, 7, 300, 5_000, 200):
        arrays = [random.integers(-50, 50, size) * 2**40 for _ in range(width)]
        drawn = list(dict.fromkeys(IntegerKeys(arrays).objects()))
        expected = [known.setdefault(key, len(known)) for key in drawn]
        index = index_of(drawn) if index is None else index
        found = index.numbers(drawn)
        assert found is not None and found.tolist() == expected
        assert len(index) == len(known)
    assert isinstance(index, IntegerIndex)
    every = np.arange(len(known))
    assert index.keys(every) == unpacked(index.packed(every)) == index.all_keys() == list(known)
    assert [index.find(key) for key in known] == every.tolist()
    assert index.groups(every, 128).tolist() == [key_group(key, 128) for key in known]
    kept = index.kept(every[::-2])
    assert [kept.find(key) for key in index.keys(every[::-2])] == list(range(len(kept)))


def test_a_key_is_found_by_all_that_is_equal_to_it() -> None:
    index = index_of([1, -1, 0])
    assert isinstance(index, IntegerIndex)
    assert [index.find(key) for key in (True, 1.0, Decimal(-1), False)] == [0, 0, 1, 2]
    for key in ("1", None, 1.5, float("nan"), 2**64, (1,), 7):
        assert index.find(key) is None
    pairs = index_of([(1, 2), (2, 1)])
    assert [pairs.find(key) for key in ((2.0, True), (1, 2), (1, None), (1, 2, 3), 1)] == [1, 0, None, None, None]


@pytest.mark.parametrize("keys", [["a"], [True], [1.0], [2**63], [(1, 2), (1,)], [(1, None)], [()], [1, "a"]], ids=repr)
def test_other_keys_are_in_a_dict(keys: list[Any]) -> None:
    assert isinstance(index_of(keys), DictIndex)
    assert index_of([5]).numbers(keys) is None
    assert DictIndex([5]).numbers(keys).tolist() == list(range(1, 1 + len(keys)))


def test_a_reader_finds_a_key_that_comes_while_it_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    index = IntegerIndex(IntegerKeys([np.arange(1000)]))
    places_of, more = key_index._places, [IntegerKeys([np.arange(1000, 1100)])]

    def interrupted(*given: Any) -> Any:
        while more:  # another thread gets its turn now: the arrays grow, and the table does not
            index.numbers(more.pop())
        return places_of(*given)

    monkeypatch.setattr(key_index, "_places", interrupted)
    assert index.find(1050) == 1050
