"""A pattern compiled: positions, and in each the options for what comes next.

A partial match that has just taken an event stands at a **position**. Each **option** there is one way to go on: take
an event for some step, complete at the next event (`not_next` last), or wait for the time to run out (`not_followed_by`
last). The options are tried independently: an event may be taken for one of them, and ignored by another. So one
partial match with a set of live options does for what would be several in an automaton of single states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from headwater.common.errors import PatternError
from headwater.operators.cep.conditions import Condition, compiled
from headwater.operators.cep.steps import Contiguity, Group, Negation, Part, PatternSteps, Step

MAX_POSITIONS = 10_000
"""`times(n)` makes a position for each repetition."""


class Kind(Enum):
    """What an option waits for."""

    TAKE = "take"
    NEXT_EVENT = "next event"
    """Any event completes the match, unless a `not_next` forbids it. The event is not part of the match."""
    END_OF_TIME = "end of time"
    """The match is complete when the time of `within` has passed."""


@dataclass(frozen=True)
class Option:
    """One way to go on from a position. Conditions are indexes into `Nfa.conditions`; None always holds."""

    kind: Kind
    step: Step | None = None
    contiguity: Contiguity = Contiguity.RELAXED
    condition: int | None = None
    until: int | None = None
    """An event that fits this is not taken."""
    not_before: tuple[int, ...] = ()
    """`not_followed_by`: an event that fits one of these, and is not taken, ends the option."""
    inner: bool = False
    """The loop has begun. An event that fits `until` is not ignored either; one that fits `not_before` is not taken."""
    not_next: tuple[int, ...] = ()
    """An event that fits one of these, as the first after the position was reached, ends the option."""
    greedy: bool = False
    """Where this option takes an event, the options after it end."""
    gap_ms: int | None = None
    target: int = -1


@dataclass(frozen=True)
class Position:
    """Where a partial match stands. Position 0 is before the first event."""

    index: int
    label: str
    options: tuple[Option, ...]
    accepts: bool
    """Whoever arrives here is a match."""

    @property
    def all_live(self) -> int:
        """The bits of all options, from bit 1 on. Bit 0: no event has come yet, which only `not_next` asks for."""
        bits = (1 << (len(self.options) + 1)) - 2
        return bits | 1 if any(option.not_next for option in self.options) else bits


@dataclass(frozen=True)
class Nfa:
    """A compiled pattern. `functions[i]` is `conditions[i]` as a callable; None always holds."""

    pattern: PatternSteps
    positions: tuple[Position, ...]
    conditions: tuple[Condition, ...]
    functions: tuple[Callable[..., Any] | None, ...]
    shape: int


def compile_pattern(pattern: PatternSteps) -> Nfa:
    """Compile a checked pattern."""
    return _Compiler(pattern).compile()


@dataclass(frozen=True)
class _Negatives:
    """The negative steps between the last event and the next one."""

    not_before: tuple[int, ...] = ()
    not_next: tuple[int, ...] = ()
    gap_ms: int | None = None


_NONE = _Negatives()

_Path = tuple[tuple[int, int], ...]
"""(index of a part in its sequence, its repetition), from the outermost sequence inwards."""


@dataclass
class _Onward:
    """What may come next."""

    options: list[Option] = field(default_factory=list)
    accepts: bool = False

    def add(self, other: _Onward) -> None:
        self.options += other.options
        self.accepts = self.accepts or other.accepts


_After = Callable[[_Negatives], _Onward]
"""What comes after a sequence of parts."""


class _Compiler:
    def __init__(self, pattern: PatternSteps) -> None:
        self._pattern = pattern
        self._conditions: list[Condition] = []
        self._index_of: dict[_Path, int] = {}
        self._to_build: list[tuple[str, Callable[[], _Onward]]] = []

    def compile(self) -> Nfa:
        self._to_build.append(("start", self._start))
        positions: list[Position] = []
        while len(positions) < len(self._to_build):
            label, build = self._to_build[len(positions)]
            onward = build()
            positions.append(Position(len(positions), label, tuple(onward.options), onward.accepts))
            if len(self._to_build) > MAX_POSITIONS:
                raise PatternError(
                    f"the pattern has more than {MAX_POSITIONS} positions; use smaller numbers in times()"
                )
        functions = tuple(map(compiled, self._conditions))
        return Nfa(self._pattern, tuple(positions), tuple(self._conditions), functions, self._pattern.shape)

    def _start(self) -> _Onward:
        """Before the first event nothing can be forbidden: negative steps after optional ones say nothing yet."""
        onward = self._sequence(self._pattern.parts, 0, (), _NONE, self._end)
        takes = [option for option in onward.options if option.kind is Kind.TAKE]
        return _Onward([replace(option, not_before=(), not_next=()) for option in takes])

    def _condition(self, condition: Condition) -> int:
        for index, known in enumerate(self._conditions):
            if known is condition:
                return index
        self._conditions.append(condition)
        return len(self._conditions) - 1

    def _end(self, negatives: _Negatives) -> _Onward:
        """After the last part."""
        if negatives.not_before:
            option = Option(Kind.END_OF_TIME, not_before=negatives.not_before, not_next=negatives.not_next)
            return _Onward([replace(option, gap_ms=negatives.gap_ms)])
        if negatives.not_next:
            return _Onward([Option(Kind.NEXT_EVENT, not_next=negatives.not_next)])
        return _Onward(accepts=True)

    def _sequence(
        self,
        parts: tuple[Part, ...],
        index: int,
        path: _Path,
        negatives: _Negatives,
        after: _After,
        head: Contiguity | None = None,
        head_gap_ms: int | None = None,
    ) -> _Onward:
        """What `parts[index:]` may begin with. `head` and `head_gap_ms` take the place of the first part's own."""
        if index == len(parts):
            return after(negatives)
        part = parts[index]
        if isinstance(part, Step) and part.negation is not None:
            return self._sequence(parts, index + 1, path, self._negated(negatives, part), after)

        def leave(negatives: _Negatives) -> _Onward:
            return self._sequence(parts, index + 1, path, negatives, after)

        contiguity = part.contiguity if head is None else head
        gap_ms = part.gap_ms if head_gap_ms is None else head_gap_ms
        onward = _Onward()
        if isinstance(part, Group):
            onward.add(self._group(part, index, 1, path, negatives, leave, contiguity, gap_ms))
        else:
            follower = parts[index + 1] if index + 1 < len(parts) else None
            option = self._take(part, index, 1, path, contiguity, gap_ms, negatives, leave, follower)
            onward.options.append(option)
        if part.optional:
            onward.add(leave(negatives))
        return onward

    def _negated(self, negatives: _Negatives, step: Step) -> _Negatives:
        forbidden = (self._condition(step.condition),)
        if step.negation is Negation.NEXT:
            return replace(negatives, not_next=negatives.not_next + forbidden)
        return replace(negatives, not_before=negatives.not_before + forbidden, gap_ms=step.gap_ms)

    def _group(
        self,
        group: Group,
        index: int,
        repetition: int,
        path: _Path,
        negatives: _Negatives,
        leave: _After,
        contiguity: Contiguity,
        gap_ms: int | None,
    ) -> _Onward:
        """What a repetition of a group may begin with."""

        def after(negatives: _Negatives) -> _Onward:
            onward = _Onward()
            if group.most is None or repetition < group.most:
                again = _next_repetition(group, repetition)
                gap = group.inner_gap_ms if group.inner_gap_ms is not None else group.gap_ms
                onward.add(self._group(group, index, again, path, negatives, leave, group.inner, gap))
            if repetition >= group.least:
                onward.add(leave(negatives))
            return onward

        inside = (*path, (index, repetition))
        return self._sequence(group.steps, 0, inside, negatives, after, contiguity, gap_ms)

    def _take(
        self,
        step: Step,
        index: int,
        repetition: int,
        path: _Path,
        contiguity: Contiguity,
        gap_ms: int | None,
        negatives: _Negatives,
        leave: _After,
        follower: Part | None,
        *,
        inner: bool = False,
    ) -> Option:
        """The option to take the event number `repetition` of a step."""
        place = (*path, (index, repetition))
        target = self._index_of.get(place)
        if target is None:
            target = self._index_of[place] = len(self._to_build)

            def build() -> _Onward:
                onward = _Onward()
                if step.most is None or repetition < step.most:
                    # As in Flink: what must not follow a loop must not come between its events either, nor be one.
                    forbidden = _NONE
                    if isinstance(follower, Step) and follower.negation is not None:
                        forbidden = self._negated(_NONE, follower)
                        if repetition < step.least or step.greedy:  # the event is the loop's: nothing is next to it
                            forbidden = replace(forbidden, not_next=())
                    again = _next_repetition(step, repetition)
                    gap = step.inner_gap_ms if step.inner_gap_ms is not None else step.gap_ms
                    onward.options.append(
                        self._take(
                            step,
                            index,
                            again,
                            path,
                            step.inner,
                            gap,
                            forbidden,
                            leave,
                            follower,
                            inner=True,
                        )
                    )
                if repetition >= step.least:
                    onward.add(leave(_NONE))
                return onward

            label = step.name
            if step.loops:
                label += f" x {repetition}" + ("+" if _next_repetition(step, repetition) == repetition else "")
            self._to_build.append((label, build))
        return Option(
            Kind.TAKE,
            step,
            contiguity,
            self._condition(step.condition),
            None if step.until is None else self._condition(step.until),
            negatives.not_before,
            inner,
            negatives.not_next,
            step.greedy,
            gap_ms,
            target,
        )


def _next_repetition(part: Part, repetition: int) -> int:
    """The number of the next repetition. Where there is no limit, all after the least number are alike."""
    return repetition + 1 if part.most is not None else min(repetition + 1, part.least)
