"""Loops over results are written for the shape of the first one: whatever comes after it is captured all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.common.errors import user_traceback
from headwater.common.output_tag import OutputTag
from headwater.operators import results
from headwater.operators.flat_map import FlatMapOperator
from headwater.operators.map import MapOperator
from headwater.operators.process import KeyedProcessOperator, ProcessOperator
from headwater.operators.results import taken
from headwater.state.copying import PlainList
from headwater.testing import OneInputOperatorHarness

SIDE = OutputTag("side")


class Noted:
    """Adds an attribute to a class that has none."""

    note: int


class Number(Noted, int):
    pass


class Text(Noted, str):
    pass


class Tuple(Noted, tuple[Any, ...]):
    pass


class Point(NamedTuple):
    x: int
    y: Any


@dataclass(frozen=True)
class Frozen:
    content: Any


class FrozenWithNote(Noted, Frozen):
    """No dataclass itself: its own attributes can be set."""


class Before(Noted):
    pass


class After(Noted):
    pass


class Pretender(Noted):
    """Says that it is a number."""

    @property
    def __class__(self) -> Any:
        return int

    @__class__.setter
    def __class__(self, cls: Any) -> None: ...


class Colour(Enum):
    RED = 1


def noted(value: Any, note: int) -> Any:
    value.note = note
    return value


PLAIN: dict[str, Callable[[int], Any]] = {
    "number": lambda n: n,
    "text": str,
    "nothing": lambda n: None,
    "no fields": lambda n: (),
    "one field": lambda n: (n,),
    "pair": lambda n: (n, n),
    "pair of others": lambda n: (str(n), None),
    "triple": lambda n: (n, "a", 0.5),
    "ten fields": lambda n: (n,) * 10,
    "wide": lambda n: tuple(range(n, n + 70)),
}
IMMUTABLE: dict[str, Callable[[int], Any]] = {
    "nested": lambda n: (n, (n, n)),
    "enum": lambda n: Colour.RED,
    "frozen": Frozen,
    "point": lambda n: Point(n, n),
    "pair with a set of frozen ones": lambda n: (n, frozenset([Frozen(n)])),
}
MUTABLE: dict[str, Callable[[int], Any]] = {
    "list": lambda n: [n],
    "bytes": lambda n: bytearray(b"a"),
    "one list": lambda n: ([n],),
    "pair with a list": lambda n: (n, [n]),
    "triple with a list": lambda n: (n, [n], 0.5),
    "ten fields with a list": lambda n: (*range(9), [n]),
    "wide with a list": lambda n: (*range(70), [n]),
    "nested with a list": lambda n: (n, (n, [n])),
    "number with a note": lambda n: noted(Number(n), n),
    "pair with a noted text": lambda n: (n, noted(Text(n), n)),
    "tuple with a note": lambda n: noted(Tuple((n, n)), n),
    "point with a list": lambda n: Point(n, [n]),
    "frozen with a list": lambda n: Frozen([n]),
    "frozen with a note": lambda n: noted(FrozenWithNote(n), n),
    "changes its class": lambda n: noted(Before(), n),
    "pretends": lambda n: noted(Pretender(), n),
    "pair with one that pretends": lambda n: (n, noted(Pretender(), n)),
}
MAKERS = PLAIN | IMMUTABLE | MUTABLE


def spoil(value: Any) -> None:
    """Change all that can be changed in a value, its class too."""
    if isinstance(value, Noted):
        value.note += 1
    if type(value) is Before:
        value.__class__ = After
    elif type(value) is list:
        value.append("spoilt")
    elif type(value) is bytearray:
        value += b"spoilt"
    elif isinstance(value, (tuple, frozenset)):
        for part in value:
            spoil(part)
    elif isinstance(value, Frozen):
        spoil(value.content)


def described(value: Any) -> str:
    """All that can be seen of a value."""
    inside = value.content if isinstance(value, Frozen) else value
    parts = ", ".join(map(described, inside)) if isinstance(inside, (tuple, list)) else str(inside)
    if isinstance(value, Noted):
        parts = (
            f"{value.note} {parts if isinstance(inside, (tuple, str, int)) and type(value) is not Pretender else ''}"
        )
    return f"{type(value).__name__}({parts})"


class Spoiling:
    """Returns values by their names, keeps them all, and changes the last ones before it returns another."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.expected: list[str] = []

    def make(self, name: str) -> Any:
        for value in self.made[-3:]:
            spoil(value)
        self.made.append(MAKERS[name](len(self.made)))
        self.expected.append(described(self.made[-1]))
        return self.made[-1]

    def make_twice(self, name: str) -> Iterator[Any]:
        for _ in range(2):
            yield self.make(name)

    def process(self, name: str, ctx: Any) -> Iterator[Any]:
        return self.make_twice(name)


def harness_of(kind: str, spoiling: Spoiling) -> OneInputOperatorHarness:
    if kind == "map":
        return OneInputOperatorHarness(MapOperator(spoiling.make))
    if kind == "flat_map":
        return OneInputOperatorHarness(FlatMapOperator(spoiling.make_twice))
    if kind == "process":
        return OneInputOperatorHarness(ProcessOperator(spoiling.process))
    return OneInputOperatorHarness(KeyedProcessOperator(len, spoiling.process), len)


NAMES = st.lists(st.sampled_from(sorted(MAKERS)), min_size=1, max_size=30)
MOSTLY_ONE = st.builds(
    lambda usual, other, at: [usual] * at + [other] * 2 + [usual] * 2,
    st.sampled_from(sorted(PLAIN)), st.sampled_from(sorted(MAKERS)), st.integers(0, 5),
)  # fmt: skip


@pytest.mark.parametrize("stamped", [False, True])
@pytest.mark.parametrize("kind", ["map", "flat_map", "process", "keyed process"])
@settings(max_examples=40, deadline=None)
@given(names=st.one_of(NAMES, MOSTLY_ONE), batch=st.sampled_from([1, 2, 7, 2048]))
def test_results_of_all_shapes(kind: str, stamped: bool, names: Sequence[str], batch: int) -> None:
    spoiling = Spoiling()
    harness = harness_of(kind, spoiling)
    for start in range(0, len(names), batch):
        records = names[start : start + batch]
        harness.process_elements(records, range(start, start + len(records)) if stamped else None)
    assert list(map(described, harness.get_output())) == spoiling.expected


@pytest.mark.parametrize("other", sorted(IMMUTABLE | MUTABLE))
@pytest.mark.parametrize("usual", ["number", "pair"])
def test_one_result_of_another_shape_late_in_a_batch(usual: str, other: str) -> None:
    names = [usual] * 2000 + [other] + [usual] * 40
    for make in (lambda spoiling: taken(names, spoiling.make), lambda spoiling: taken(map(spoiling.make, names))):
        spoiling = Spoiling()
        assert list(map(described, make(spoiling))) == spoiling.expected


@given(names=NAMES)
def test_batches_that_cannot_change_are_known_as_such(names: Sequence[str]) -> None:
    results = taken(names, Spoiling().make)
    assert (type(results) is PlainList) is MUTABLE.keys().isdisjoint(names)


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_the_shape_of_a_first_result_that_can_change_is_no_example(name: str) -> None:
    spoiling = Spoiling()
    assert list(map(described, taken([name] * 4, spoiling.make))) == spoiling.expected


def test_side_outputs_among_plain_tuples() -> None:
    kept: list[list[int]] = []

    def process(value: int, ctx: Any) -> Iterator[Any]:
        for each in kept:
            each.append(-1)
        yield value, value
        if value % 3 == 0:
            kept.append([value])
            yield SIDE, kept[-1]
            yield SIDE, value

    for stamps in (None, range(7)):
        kept.clear()
        harness = OneInputOperatorHarness(ProcessOperator(process))
        harness.process_elements(range(7), stamps)
        assert harness.get_output() == [(n, n) for n in range(7)]
        assert harness.get_side_output(SIDE) == [[0], 0, [3], 3, [6], 6]


def test_the_loop_is_no_frame_of_the_user() -> None:
    """It is compiled from text. A user's traceback begins with the user's own function."""
    loop = results._loop(None, True)
    with pytest.raises(ZeroDivisionError) as raised:
        loop([1, 0], lambda value: 1 // value, lambda result: result, frozenset({int}), int)
    lines = user_traceback(raised.value).splitlines()
    assert not any("<string>" in line for line in lines)
    assert "test_result_shapes.py" in lines[1]
