"""Key groups, their owners, and the router that the shuffle uses."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.errors import InvalidKeyError
from headwater.state.keys import key_groups
from headwater.state.keys.key_groups import (
    KeyRouter,
    by_key_group,
    key_group,
    key_group_range,
    partition_of_key_group,
)


@given(st.integers(1, 300), st.data())
def test_ranges_cover_all_groups_once_and_agree_with_the_owner(max_parallelism: int, data: st.DataObject) -> None:
    parallelism = data.draw(st.integers(1, max_parallelism))
    owned = [
        (group, partition)
        for partition in range(parallelism)
        for group in key_group_range(partition, max_parallelism, parallelism)
    ]
    assert [group for group, _ in owned] == list(range(max_parallelism))
    assert all(partition_of_key_group(group, max_parallelism, parallelism) == owner for group, owner in owned)


def test_ranges_are_flinks() -> None:
    assert [key_group_range(index, 128, 3) for index in range(3)] == [range(0, 43), range(43, 86), range(86, 128)]


@given(st.lists(st.one_of(st.integers(), st.text(), st.tuples(st.text(), st.integers()), st.none(), st.booleans())))
def test_router_gives_the_owner_of_the_keys_group(keys: list[Any]) -> None:
    router = KeyRouter(128, 3)
    expected = [partition_of_key_group(key_group(key, 128), 128, 3) for key in keys]
    assert router.partitions(keys) == expected
    assert [router[key] for key in keys] == expected  # now from the memo


@given(st.lists(st.one_of(st.integers(), st.text(), st.floats(allow_nan=False))))
def test_grouping_keeps_every_key_in_its_group(keys: list[Any]) -> None:
    groups = by_key_group(keys, 16)
    assert list(groups) == sorted(groups)
    assert groups == {
        group: [key for key in keys if key_group(key, 16) == group] for group in {key_group(key, 16) for key in keys}
    }


def test_memo_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_groups, "_MEMO_LIMIT", 10)
    router = KeyRouter(128, 4)
    answers = [router[key] for key in range(1000)]
    assert len(router) <= 10
    assert answers == KeyRouter(128, 4).partitions(range(1000))


@pytest.mark.parametrize("bad", [math.nan, [1], (1, {})], ids=repr)
def test_router_says_which_key_is_bad(bad: Any) -> None:
    with pytest.raises(InvalidKeyError):
        KeyRouter(128, 2).partitions([1, "a", bad])


def test_nan_is_refused_every_time() -> None:
    router = KeyRouter(128, 2)
    for _ in range(2):
        with pytest.raises(InvalidKeyError):
            router[math.nan]


def test_router_travels_without_its_memo() -> None:
    router = KeyRouter(64, 5)
    router.partitions(range(100))
    copied = pickle.loads(pickle.dumps(router))
    assert len(copied) == 0
    assert copied.partitions(range(100)) == router.partitions(range(100))


@given(st.lists(st.integers(-(2**60), 2**60), min_size=1), st.integers(1, 64))
def test_routing_integers_at_once_gives_the_same(keys: list[int], parallelism: int) -> None:
    router = KeyRouter(128, parallelism)
    assert router.route_integers(keys) == router.partitions(keys)
    assert router.route_integers([*keys, "other"]) is None


def test_a_router_says_when_its_memo_is_too_small() -> None:
    router = KeyRouter(128, 2)
    router.partitions(range(65_536))
    assert not router.overflowed
    router.partitions(range(65_537))
    assert router.overflowed
