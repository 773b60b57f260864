"""A key that could be changed is copied, and the copy is equal, hashable, and cannot be changed."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from headwater.common.types import Row, RowKind
from headwater.state.keys.frozen_keys import frozen
from headwater.state.keys.stable_hash import stable_hash
from headwater.state.rocksdb.keys import encode_key
from tests.unit.state.key_samples import ONE_KEY_EACH, Point

MUTABLE: list[Any] = [
    [],
    ["a", 1],
    [[1], {"b": [2]}],
    {},
    {"a": [1], "b": {2}},
    {1, 2},
    bytearray(b"ab"),
    Row("a", [1]),
    Row(x=1, y=[2]),
    Row.of_kind(RowKind.DELETE, "a"),
    ("a", [1]),
    Point([1], {"a": 2}),
]


@pytest.mark.parametrize("key", MUTABLE)
def test_the_frozen_copy_is_equal_and_a_key(key: Any) -> None:
    made = frozen(key)
    assert made is not key and made == key and hash(made) == hash(frozen(copy.deepcopy(key)))
    for again in (frozen(made), frozen(copy.deepcopy(key)), pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert again == made and type(again) is type(made)
        assert stable_hash(again) == stable_hash(made) and encode_key(again)[0] == encode_key(made)[0]


@pytest.mark.parametrize("key", [key for group in ONE_KEY_EACH for key in group if not isinstance(key, Row)])
def test_what_cannot_be_changed_is_not_copied(key: Any) -> None:
    assert frozen(key) is key or isinstance(key[0], Row)


def test_all_of_them_are_different_keys() -> None:
    keys = [*map(frozen, MUTABLE), (), ("a", 1), frozenset(), b""]
    assert len({encode_key(key)[0] for key in keys}) == len(keys)
    assert encode_key(frozen({"a": 1, "b": 2}))[0] == encode_key(frozen({"b": True + 1, "a": 1.0}))[0]


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ([1], lambda key: key.append(2)),
        ([1], lambda key: key.__setitem__(0, 2)),
        ([1], lambda key: key.__iadd__([2])),
        ([[1]], lambda key: key[0].clear()),
        ([2, 1], lambda key: key.sort()),
        ({"a": 1}, lambda key: key.update(a=2)),
        ({"a": 1}, lambda key: key.pop("a")),
        ({"a": [1]}, lambda key: key["a"].pop()),
        (Row(x=1), lambda key: key.__setitem__("x", 2)),
        (Row(x=1), lambda key: key.set_row_kind(RowKind.DELETE)),
    ],
)
def test_it_cannot_be_changed(key: Any, change: Callable[[Any], None]) -> None:
    made = frozen(key)
    with pytest.raises(TypeError, match="is a key, which cannot be changed"):
        change(made)
    assert made == key


def test_it_looks_like_what_it_is_a_copy_of() -> None:
    for key in (["a", 1], {"a": [1]}, Row("a", [1]), ("a", [1])):
        assert str(frozen(key)) == str(key) and repr(frozen(key)) == repr(key)
    assert isinstance(frozen([1]), list) and isinstance(frozen({}), dict) and isinstance(frozen(Row()), Row)
    assert type(frozen([1]).copy()) is list
