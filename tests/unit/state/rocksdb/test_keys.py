"""Bytes of keys: as equal, and as different, as the keys."""

from __future__ import annotations

import datetime
import pickle
import uuid
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.types import Row
from headwater.state.keys.stable_hash import stable_hash
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


class Colour(Enum):
    RED = 1


class Own:
    def __init__(self, tags: set[str]) -> None:
        self.tags = tags

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and self.tags == other.tags

    def __hash__(self) -> int:
        return hash(frozenset(self.tags))


UTC, PLUS_TWO = datetime.UTC, datetime.timezone(datetime.timedelta(hours=2))
NOON = datetime.datetime(2026, 1, 1, 12)

GROUPS_OF_EQUALS: list[list[Any]] = [
    [1, 1.0, True, Decimal(1), Fraction(1), complex(1), Level.LOW],
    [0, -0.0, False, Decimal("-0")],
    [2**70, float(2**70), Decimal(2**70)],
    [0.5, Decimal("0.5"), Fraction(1, 2)],
    [Decimal("0.1"), Fraction(1, 10)],
    [0.1],
    [float("inf"), Decimal("Infinity")],
    [complex(1, 2)],
    ["1"],
    [b"1", memoryview(b"1")],
    [None],
    [(1, 2), Point(1, 2), (1.0, 2)],
    [((1,), 2)],
    [frozenset({1, "a"}), frozenset({"a", True})],
    [Row(1, 2)],
    [Row(a=1, b=2), Row(b=2, a=1)],
    [User("a", 1), User("a", 1)],
    [User("a", 2)],
    [Colour.RED],
    [uuid.UUID(int=5)],
    [NOON],
    [NOON.replace(tzinfo=UTC), NOON.replace(hour=14, tzinfo=PLUS_TWO)],
    [datetime.date(2026, 1, 1)],
    [datetime.time(12, tzinfo=UTC), datetime.time(14, tzinfo=PLUS_TWO)],
    [datetime.time(12)],
    [datetime.timedelta(1), datetime.timedelta(hours=24)],
    [int],
    [Own({"a", "b"}), Own({"b", "a"})],
    [Own({"a"})],
]


@pytest.mark.parametrize("group", GROUPS_OF_EQUALS, ids=lambda group: type(group[0]).__name__)
def test_equal_keys_have_equal_bytes(group: list[Any]) -> None:
    assert all(key == group[0] for key in group)
    assert len({encode_key(key)[0] for key in group}) == 1
    assert len({stable_hash(key) for key in group}) == 1  # the law that it follows


def test_different_keys_have_different_bytes_of_which_none_begins_another() -> None:
    encoded = [encode_key(group[0])[0] for group in GROUPS_OF_EQUALS]
    for one in encoded:
        assert [other for other in encoded if other.startswith(one)] == [one]


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


@pytest.mark.parametrize("group", GROUPS_OF_EQUALS, ids=lambda group: type(group[0]).__name__)
def test_a_key_that_was_pickled_has_the_same_bytes(group: list[Any]) -> None:
    if not isinstance(group[0], memoryview):
        assert encode_key(pickle.loads(pickle.dumps(group[0])))[0] == encode_key(group[0])[0]


def test_the_bytes_are_the_same_for_ever() -> None:
    """They are in checkpoints: a change here makes state disappear."""
    assert encode_key(1)[0].hex() == "010000000000000001"
    assert encode_key("ab")[0].hex() == "02000000026162"
    assert encode_key(("a", 0.5, None))[0].hex() == "0700000003" + "020000000161" + "043fe0000000000000" + "06"
    assert encode_key(b"a")[0].hex() == "050000000161"
    assert encode_key(2**64)[0].hex() == "03" + "00000009" + "010000000000000000"
