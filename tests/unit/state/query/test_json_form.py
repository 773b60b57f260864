"""State as JSON, keys from JSON, and the order of keys."""

from __future__ import annotations

import datetime
import enum
import json
import uuid
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.query_error import QueryError, QueryProblem
from headwater.common.types import Row
from headwater.state.keys.frozen_keys import frozen
from headwater.state.query.json_form import (
    OpaqueKey,
    key_from_json,
    key_from_text,
    key_of_row,
    sort_key,
    to_json,
    value_from_json,
)
from headwater.time.windows import TimeWindow


class Colour(enum.Enum):
    RED = 1


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Order:
    number: int
    lines: list[str]


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no")


KEYS = [
    None, True, 42, -1, 2**70, 1.5, "text", "", b"\x00\xff", (1, ("a", None)), Decimal("1.50"), Fraction(1, 3),
    datetime.datetime(2026, 1, 2, 3, 4, 5), datetime.date(2026, 1, 2), datetime.time(3, 4), uuid.UUID(int=7),
    TimeWindow(0, 10), frozen([1, 2]), frozen(Row(1, "a")),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_a_key_comes_back_as_it_was(key: Any) -> None:
    form = json.loads(json.dumps(to_json(key), allow_nan=False))
    assert key_from_json(form) == key
    assert type(key_from_json(form)) is type(key)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
        lambda inner: st.lists(inner, max_size=4).map(tuple),
    )
)
def test_any_plain_key_comes_back_as_it_was(key: Any) -> None:
    assert key_from_json(json.loads(json.dumps(to_json(key)))) == key


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ({"a": (1, [2])}, {"a": [1, [2]]}),
        ({1: "x"}, {"$map": [[1, "x"]]}),
        ({"$bytes": 1}, {"$map": [["$bytes", 1]]}),
        (Order(1, ["a"]), {"number": 1, "lines": ["a"]}),
        (Point(1, 2), {"x": 1, "y": 2}),
        (Colour.RED, {"$enum": "RED"}),
        (float("nan"), {"$float": "nan"}),
        ({3}, {"$set": [3]}),
        (Row(a=1), {"a": 1}),
        (datetime.timedelta(seconds=2), {"$timedelta": 2.0}),
    ],
    ids=repr,
)
def test_a_value_has_one_form(value: Any, form: Any) -> None:
    assert to_json(value) == form
    json.dumps(to_json(value), allow_nan=False)


def test_what_has_no_form_is_text_and_never_an_error() -> None:
    assert list(to_json(object())) == ["$repr"]
    assert list(to_json(Broken())) == ["$repr"]
    deep: Any = []
    for _ in range(1000):
        deep = [deep]
    json.dumps(to_json(deep))


def test_a_value_is_read_as_python_has_it() -> None:
    value = {"at": datetime.date(2026, 1, 2), "of": {(1, "a"): Decimal("2")}, "in": {b"x"}}
    assert value_from_json(json.loads(json.dumps(to_json(value)))) == value


@pytest.mark.parametrize(
    ("text", "key"),
    [("42", 42), ('"42"', "42"), ("alice", "alice"), ("12abc", "12abc"), ('[1, "a"]', (1, "a")), ("null", None)],
)
def test_a_person_types_json_or_a_word(text: str, key: Any) -> None:
    assert key_from_text(text) == key


@pytest.mark.parametrize(
    "text",
    [
        "", "{bad", "[1,", '"open', '{"a": 1}', '{"$bytes": 1}', '{"$decimal": "x"}', '{"$window": []}', '{"$list": 3}',
        "x" * 5000, "[" * 2000, '{"$what": 1}', '{"$bytes": "!"}', '{"$row": null}', '{"$date": "2026-99-99"}',
    ],
)  # fmt: skip
def test_a_malformed_key_is_refused(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        key_from_text(text)
    assert caught.value.problem is QueryProblem.BAD_KEY


def test_keys_of_all_kinds_have_one_order() -> None:
    ordered = [None, -1, 0.5, 2, "", "a", "b", b"a", (1, "a"), (1, "b"), (2,)]
    assert sorted(reversed(ordered), key=sort_key) == ordered


def test_a_key_of_a_class_can_bound_a_scan() -> None:
    form = to_json(Order(1, []))
    key = key_of_row(form)
    assert isinstance(key, OpaqueKey)
    assert sort_key(key) == sort_key(Order(1, []))
    with pytest.raises(QueryError):
        key_from_json(to_json(key))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({Colour.RED: 2}, {"RED": 2}),
        ({datetime.timedelta(seconds=3): 1}, {datetime.timedelta(seconds=3): 1}),
        ({frozenset({1, 2}): 1}, {frozenset({1, 2}): 1}),
        ({(Colour.RED, 1): 1}, {("RED", 1): 1}),
        ({Point(1, 2): 3}, {OpaqueKey('{"x": 1, "y": 2}'): 3}),
        ({Colour.RED: 1, "RED": 2}, {"RED": 1, OpaqueKey('"RED"'): 2}),
        ({Colour.RED}, {"RED"}),
        ({frozenset({(1, 2)})}, {frozenset({(1, 2)})}),
        (Row(1, {"a": [2]}), Row(1, {"a": [2]})),
        (frozen([1, (Colour.RED,)]), [1, ["RED"]]),
        (float("inf"), float("inf")),
    ],
    ids=repr,
)
def test_every_value_can_be_read_by_a_program(value: Any, expected: Any) -> None:
    assert value_from_json(json.loads(json.dumps(to_json(value)))) == expected


SURROGATE = 'caf\udce9 "x\\'


@pytest.mark.parametrize("value", [SURROGATE, [SURROGATE], {SURROGATE: 1}, {"a": SURROGATE}], ids=ascii)
def test_text_that_is_not_unicode_has_a_form(value: Any) -> None:
    form = msgspec.json.encode(to_json(value))
    assert value_from_json(msgspec.json.decode(form)) == value


def test_a_key_that_is_not_unicode_is_found_again() -> None:
    assert key_from_json(json.loads(json.dumps(to_json(SURROGATE)))) == SURROGATE
    assert key_from_json([json.loads(json.dumps(SURROGATE))]) == (SURROGATE,)
