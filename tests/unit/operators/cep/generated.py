"""Patterns and streams that hypothesis makes. Events are sets of letters; a step's condition asks for a letter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from headwater.common.errors import PatternError
from headwater.operators.cep.conditions import Test
from headwater.operators.cep.skip import AfterMatchSkipStrategy
from headwater.operators.cep.steps import Contiguity, Group, Negation, Part, PatternSteps, Step, all_steps
from tests.unit.operators.cep.oracle import Event

LETTERS = "abc"


class Letter:
    """The event has the letter."""

    def __init__(self, letter: str) -> None:
        self.letter = letter

    def __call__(self, event: Any) -> bool:
        return self.letter in event.letters

    def holds(self, letters: str, taken: list[str]) -> bool:
        return self.letter in letters

    def __repr__(self) -> str:
        return self.letter


class LetterAfter(Letter):
    """The event has the letter, and the partial match has an even number of events of the first step."""

    def __call__(self, event: Any, ctx: Any = None) -> bool:  # type: ignore[override]
        return self.letter in event.letters and len(ctx.get_events_for_pattern("s0")) % 2 == 1

    def holds(self, letters: str, taken: list[str]) -> bool:
        return self.letter in letters and taken.count("s0") % 2 == 1

    def __repr__(self) -> str:
        return f"{self.letter}?"


def letter() -> st.SearchStrategy[Test]:
    return st.sampled_from(LETTERS).map(lambda name: Test(Letter(name)))


def conditions() -> st.SearchStrategy[Test]:
    iterative = st.sampled_from(LETTERS).map(lambda name: Test(LetterAfter(name), True))
    return st.one_of(letter(), letter(), letter(), iterative)


@st.composite
def steps(draw: Any, name: str, first: bool, last: bool, timed: bool) -> Step:
    contiguity = draw(st.sampled_from(list(Contiguity)))
    condition = draw(letter() if first else conditions())
    if not first and draw(st.integers(0, 5)) == 0:
        negation = draw(st.sampled_from(list(Negation) if timed or not last else [Negation.NEXT]))
        return Step(name, condition=condition, negation=negation)
    step = Step(name, contiguity, condition)
    kind = draw(st.sampled_from(["one", "one", "one", "plus", "times", "range", "more"]))
    if kind == "plus":
        step = replace(step, most=None)
    elif kind == "times":
        step = replace(step, least=2, most=2)
    elif kind == "range":
        step = replace(step, least=1, most=draw(st.integers(2, 3)))
    elif kind == "more":
        step = replace(step, least=2, most=None)
    if step.loops:
        step = replace(step, inner=draw(st.sampled_from(list(Contiguity))))
        if step.inner is not Contiguity.ANY and step.least != step.most:
            step = replace(step, greedy=draw(st.booleans()))
        if step.most is None and draw(st.integers(0, 2)) == 0:
            step = replace(step, until=draw(conditions()))
        if draw(st.integers(0, 4)) == 0:
            step = replace(step, inner_gap_ms=draw(st.integers(1, 4)))
    if draw(st.integers(0, 3)) == 0:
        step = replace(step, optional=True)
    if not first and draw(st.integers(0, 5)) == 0:
        step = replace(step, gap_ms=draw(st.integers(1, 5)))
    return step


@st.composite
def patterns(draw: Any, groups: bool = True) -> PatternSteps:
    within = draw(st.one_of(st.none(), st.integers(1, 12)))
    count = draw(st.integers(1, 4))
    parts: list[Part] = [
        draw(steps(f"s{index}", index == 0, index == count - 1, within is not None)) for index in range(count)
    ]
    if groups and count > 1 and draw(st.booleans()):
        first = draw(st.integers(0, count - 1))
        last = draw(st.integers(first, count - 1))
        inner = parts[first : last + 1]
        if not (isinstance(inner[0], Step) and inner[0].negation):
            least, most = draw(st.sampled_from([(1, 1), (1, 1), (1, None), (2, 2), (1, 2)]))
            loops = most != 1
            group = Group(
                tuple(inner),
                draw(st.sampled_from(list(Contiguity))),
                least,
                most,
                draw(st.integers(0, 3)) == 0,
                draw(st.sampled_from(list(Contiguity))) if loops else Contiguity.RELAXED,
            )
            parts[first : last + 1] = [group]
    positive = [step.name for step in all_steps(parts) if step.negation is None]
    target = draw(st.sampled_from(positive))
    skip = draw(
        st.sampled_from(
            [
                AfterMatchSkipStrategy.no_skip(),
                AfterMatchSkipStrategy.no_skip(),
                AfterMatchSkipStrategy.skip_to_next(),
                AfterMatchSkipStrategy.skip_past_last_event(),
                AfterMatchSkipStrategy.skip_to_first(target),
                AfterMatchSkipStrategy.skip_to_last(target),
            ]
        )
    )
    try:
        return PatternSteps(tuple(parts), skip, within)
    except PatternError:
        return PatternSteps(
            (Step("s0", condition=draw(letter())),), skip if skip.target in (None, "s0") else _NO, within
        )


_NO = AfterMatchSkipStrategy.no_skip()


@st.composite
def streams(draw: Any, most: int = 7) -> list[Event]:
    events = []
    timestamp = 0
    letters = st.sampled_from(["", "a", "b", "c", "a", "b", "c", "ab", "bc", "ac", "abc"])
    for _ in range(draw(st.integers(1, most))):
        timestamp += draw(st.integers(0, 3))
        events.append(Event(draw(letters), timestamp))
    return events
