"""The hash is the same everywhere and for ever; what cannot be a key is refused. `test_key_classes.py` has the rest."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.errors import InvalidKeyError
from headwater.common.types import Row
from headwater.state.keys.stable_hash import hash_integers, stable_hash


class Colour(Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Account:
    bank: str
    number: int


numbers = st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans(), st.decimals(allow_nan=False))
scalars = st.one_of(numbers, st.text(), st.binary(), st.none(), st.dates(), st.uuids())
keys = st.recursive(scalars, lambda inner: st.one_of(st.tuples(inner, inner), st.frozensets(scalars, max_size=3)))


@given(numbers, numbers)
def test_numbers_keep_pythons_law(left: Any, right: Any) -> None:
    if left == right:
        assert stable_hash(left) == stable_hash(right)


@given(st.integers(min_value=-(2**53), max_value=2**53))
def test_a_whole_float_hashes_as_its_int(number: int) -> None:
    assert stable_hash(float(number)) == stable_hash(number) == stable_hash(Decimal(number))


@given(keys)
def test_hash_is_unsigned_32_bit(key: Any) -> None:
    assert 0 <= stable_hash(key) < 2**32


def test_values_never_change() -> None:
    """Persisted state is found by these numbers. If this test fails, all checkpoints are lost: do not adapt it."""
    assert [stable_hash(key) for key in (0, 1, -1, 2**64, 1.5)] == FROZEN_NUMBERS
    assert [stable_hash(key) for key in ("", "a", "käse", b"a", None)] == FROZEN_TEXTS
    assert [stable_hash(key) for key in (("a", 1), (), frozenset((1, 2)), Row("a", 1), Row(x=1))] == FROZEN_TUPLES


FROZEN_NUMBERS = [3736311059, 149775153, 1658086589, 825563442, 3214956491]
FROZEN_TEXTS = [46947589, 1426945110, 553348449, 1426945110, 261283292]
FROZEN_TUPLES = [270925987, 2737903632, 2031668853, 907908927, 2977523775]

_PROGRAM = """
import datetime, uuid
from headwater.common.types import Row
from headwater.state.keys.stable_hash import stable_hash
keys = ["a", b"a", ("a", 1, None), frozenset(["a", "b", "c"]), Row(x="a", y="b"), datetime.date(2024, 1, 1)]
keys.append(uuid.UUID(int=1))
print([stable_hash(key) for key in keys])
"""


def test_is_the_same_whatever_the_hash_seed() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize(
    "key",
    [
        math.nan,
        (1, math.nan),
        ("a", (math.nan,)),
        frozenset([math.nan]),
        Decimal("NaN"),
        Decimal("sNaN"),
        complex(0, math.nan),
        Row(math.nan),
        Account("x", math.nan),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_nan_is_no_key(key: Any) -> None:
    with pytest.raises(InvalidKeyError, match="not equal to itself"):
        stable_hash(key)


@pytest.mark.parametrize("key", [[1], {"a": 1}, {1}, (1, [2]), bytearray(b"a"), Account("x", [])], ids=repr)  # type: ignore[arg-type]
def test_unhashable_is_no_key(key: Any) -> None:
    with pytest.raises(InvalidKeyError, match="unhashable"):
        stable_hash(key)


def test_an_object_that_compares_by_identity_is_no_key() -> None:
    class Session:
        pass

    with pytest.raises(InvalidKeyError, match="Session, which compares by identity"):
        stable_hash(Session())


def test_enum_members_and_classes_are_keys() -> None:
    assert stable_hash(Colour.RED) != stable_hash(Colour.BLUE)
    assert stable_hash(int) != stable_hash(str)


def test_sequential_keys_spread_evenly() -> None:
    for make in (int, lambda i: f"user-{i}", lambda i: (i, "x"), lambda i: i << 40):
        counts = [0] * 128
        for index in range(12_800):
            counts[stable_hash(make(index)) % 128] += 1
        assert max(counts) < 160 and min(counts) > 50


@given(
    st.lists(st.integers(), max_size=50) | st.lists(st.sampled_from([-2, -1, 0, 1, 2**61 - 2, 1 - 2**61, 2**61 - 1]))
)
def test_many_integers_at_once_hash_as_one_by_one(keys: list[int]) -> None:
    hashed = hash_integers(keys)
    fits = bool(keys) and all(abs(key) < 2**61 - 1 for key in keys)
    assert (hashed is not None) == fits
    if hashed is not None:
        assert hashed.tolist() == [stable_hash(key) for key in keys]


@pytest.mark.parametrize("other", [True, 1.0, "1", None, (1,)])
def test_only_plain_integers_are_hashed_at_once(other: Any) -> None:
    assert hash_integers([1, other, 3]) is None
