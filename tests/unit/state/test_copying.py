"""What is shared and what is copied."""

from __future__ import annotations

import datetime
import re
import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.types import Row, RowKind
from headwater.state.copying import all_captured, are_plain, is_immutable, protective_copy


class Point(NamedTuple):
    x: int
    y: Any


class Colour(Enum):
    RED = 1


@dataclass(frozen=True)
class Frozen:
    content: Any


@dataclass
class Open:
    content: list[int] = field(default_factory=list)


@dataclass
class Counter2D:
    x: int = 0


class TupleWithDict(tuple):  # type: ignore[type-arg]  # its __dict__ can change
    pass


@dataclass(frozen=True, slots=True)
class FrozenSlots:
    content: Any


class SubclassOfFrozen(Frozen):
    """No dataclass itself: attributes of its own can be set."""


class WithOwnIteration(Point):
    __slots__ = ()

    def __iter__(self) -> Any:
        return iter(())


@dataclass(frozen=True)
class Caching:
    x: int

    @cached_property
    def parts(self) -> list[int]:
        return [self.x]


def _with_cached_list() -> Caching:
    caching = Caching(1)
    caching.parts.append(2)
    return caching


class Pretender:
    """Says that it is a number."""

    def __init__(self) -> None:
        self.__dict__["number"] = 1

    @property
    def __class__(self) -> Any:
        return int

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other)

    def __repr__(self) -> str:
        return "Pretender()"


IMMUTABLE = [
    None,
    True,
    1,
    1.5,
    "a",
    b"a",
    Decimal(1),
    datetime.datetime(2024, 1, 1),
    datetime.timedelta(1),
    re.compile("a"),
    Colour.RED,
    (1, ("a", None)),
    frozenset([1, (2,)]),
    Point(1, "a"),
    Frozen((1, 2)),
    FrozenSlots((1, 2)),
    WithOwnIteration(1, 2),
    Caching(1),
    range(3),
    len,
    int,
]
MUTABLE = [
    [],
    {},
    set(),
    bytearray(b"a"),
    ([],),
    (1, (2, {})),
    Point(1, []),
    Frozen([]),
    Frozen(Frozen({})),
    FrozenSlots([]),
    SubclassOfFrozen(1),
    _with_cached_list(),
    Pretender(),
    Open(),
    Counter2D(),
    Row(1),
    Counter(),
    TupleWithDict((1,)),
]


@pytest.mark.parametrize("value", IMMUTABLE, ids=repr)
def test_immutable_values_are_shared(value: Any) -> None:
    assert is_immutable(value)
    assert protective_copy(value) is value


@pytest.mark.parametrize("value", MUTABLE, ids=repr)
def test_mutable_values_are_copied(value: Any) -> None:
    assert not is_immutable(value)
    copied = protective_copy(value)
    assert copied == value and type(copied) is type(value)
    assert copied is not value


def test_a_tuple_that_hides_its_parts() -> None:
    assert not is_immutable(WithOwnIteration(1, []))


nested = st.recursive(
    st.one_of(st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)),
)


def _containers(value: Any) -> list[Any]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    own = [value] if isinstance(value, (list, dict)) else []
    return own + [container for part in parts for container in _containers(part)]


@given(nested)
def test_a_copy_shares_no_container(value: Any) -> None:
    copied = protective_copy(value)
    assert copied == value
    assert not {id(part) for part in _containers(value)} & {id(part) for part in _containers(copied)}


def test_cycles_and_shared_parts_survive() -> None:
    inner: list[Any] = [1]
    outer = [inner, inner]
    copied = protective_copy(outer)
    assert copied[0] is copied[1] and copied[0] is not inner
    inner.append(outer)
    cyclic = protective_copy(outer)
    assert cyclic[0][1] is cyclic


def test_row_keeps_names_and_kind() -> None:
    row = Row.of_kind(RowKind.DELETE, x=1, y=[2])
    copied = protective_copy(row)
    assert copied == row and copied.get_field_names() == ["x", "y"]
    copied["y"].append(3)
    assert row["y"] == [2]
    assert protective_copy(Row(x=1)).get_field_names() == ["x"]


def test_what_pickle_cannot_copy_is_copied_by_copy() -> None:
    value = {"f": [lambda x: x], "n": [1]}
    copied = protective_copy(value)
    copied["n"].append(2)
    assert value["n"] == [1]
    locks = [[threading.Lock()]]
    assert protective_copy(locks) is locks  # who persists it, or sends it on, refuses it


class Plain:
    def __init__(self, *parts: object) -> None:
        self.parts = parts


class WithSlot(Plain):
    __slots__ = ("extra",)


class WithOwnWay(Plain):
    def __reduce__(self) -> object:
        return WithOwnWay, ("by its own way",)


def test_objects_are_copied_with_all_they_have() -> None:
    simple, slotted = Plain(1, "a"), WithSlot([1])
    slotted.extra = 2
    copied = protective_copy(simple)
    assert copied is not simple and copied.parts == (1, "a")
    other = protective_copy(slotted)
    assert (other.parts, other.extra) == (([1],), 2) and other.parts[0] is not slotted.parts[0]
    assert protective_copy(WithOwnWay(1)).parts == ("by its own way",)


@pytest.mark.parametrize(
    ("values", "plain"),
    [
        ([1, "a", None], True),
        ([(1, "a"), (), 2.0], True),
        ([(1, [2])], False),
        ([1, (2,), [3]], False),
        ([((1,),)], False),  # only one level is looked at
        ([], True),
    ],
)
def test_plain_batches(values: list[object], plain: bool) -> None:
    assert are_plain(values) is plain
    captured = all_captured(values)
    assert captured == values and (captured is values) is plain


def test_subclasses_keep_their_class() -> None:
    value = OrderedDict(a=[1])
    assert type(protective_copy(value)) is OrderedDict
