"""Bytes of keys, and keys from bytes. `test_key_classes.py` says which are equal."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.state.rocksdb.keys import decode_key, encode_key


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True)
class User:
    name: str
    number: int


class Level(IntEnum):
    LOW = 1


PLAIN = st.recursive(
    st.none()
    | st.integers()
    | st.text()
    | st.binary()
    | st.uuids()
    | st.floats(allow_nan=False).filter(lambda number: not number.is_integer()),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=6,
)
ANY = PLAIN | st.booleans() | st.floats(allow_nan=False) | st.decimals(allow_nan=False, places=2) | st.fractions()


@given(PLAIN, st.binary(max_size=3))
def test_plain_keys_can_be_had_back(key: Any, behind: bytes) -> None:
    encoded, says_all = encode_key(key)
    assert says_all
    found, end = decode_key(b"xx" + encoded + behind, 2)
    assert found == key and type(found) is type(key) and end == 2 + len(encoded)


@given(ANY, ANY)
def test_bytes_are_equal_exactly_where_keys_are(left: Any, right: Any) -> None:
    assert (encode_key(left)[0] == encode_key(right)[0]) == (left == right)


@pytest.mark.parametrize("key", [True, 1.0, Point(1, 2), Level.LOW, (1, True), User("a", 1), frozenset()], ids=repr)
def test_of_other_keys_the_bytes_do_not_say_all(key: Any) -> None:
    assert not encode_key(key)[1]


def test_the_bytes_are_the_same_for_ever() -> None:
    """They are in checkpoints: a change here makes state disappear."""
    assert encode_key(1)[0].hex() == "010000000000000001"
    assert encode_key("ab")[0].hex() == "02000000026162"
    assert encode_key(("a", 0.5, None))[0].hex() == "0700000003" + "020000000161" + "043fe0000000000000" + "06"
    assert encode_key(b"a")[0].hex() == "050000000161"
    assert encode_key(2**64)[0].hex() == "03" + "00000009" + "010000000000000000"
