"""Patterns of events, step by step: names and meaning as in Flink's CEP library for Java."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, Self

from headwater.cep.within_type import WithinType
from headwater.common.errors import ConfigurationError, PatternError
from headwater.common.time import DurationLike, to_millis
from headwater.operators.cep.conditions import Always, Both, Condition, Either, Subtype, condition_of
from headwater.operators.cep.skip import AfterMatchSkipStrategy
from headwater.operators.cep.steps import Contiguity, Group, Negation, Part, PatternSteps, Step

LONGEST_MS = 1_000 * 366 * 86_400_000


class Pattern:
    """A sequence of steps. `next` and its sisters return a longer pattern; the other methods change its last step.

        Pattern.begin("small").where(lambda p: p.amount < 1).followed_by("large").where(lambda p: p.amount > 500)
            .within(Duration.of_minutes(10))

    Every method raises `PatternError` where it has no meaning.
    """

    def __init__(self, previous: Pattern | None, part: Part, skip: AfterMatchSkipStrategy) -> None:
        """Not for users: call `Pattern.begin`."""
        self._previous = previous
        self._part = part
        self._skip = skip
        self._within_ms: int | None = None

    # -- steps --------------------------------------------------------------------------------------------------------

    @classmethod
    def begin(cls, name: str | Pattern, after_match_skip_strategy: AfterMatchSkipStrategy | None = None) -> Pattern:
        """The first step, or a group of steps; and where to go on after a match (default: `no_skip`)."""
        skip = AfterMatchSkipStrategy.no_skip() if after_match_skip_strategy is None else after_match_skip_strategy
        if not isinstance(skip, AfterMatchSkipStrategy):
            raise PatternError(f"begin() expects an AfterMatchSkipStrategy, found {skip!r}")
        return _of(None, _part("begin", name, Contiguity.RELAXED), skip)

    def next(self, name: str | Pattern) -> Pattern:
        """The very next event must fit."""
        return self._then("next", name, Contiguity.STRICT)

    def followed_by(self, name: str | Pattern) -> Pattern:
        """The next event that fits, whatever comes in between."""
        return self._then("followed_by", name, Contiguity.RELAXED)

    def followed_by_any(self, name: str | Pattern) -> Pattern:
        """Any later event that fits: each of them continues a match of its own."""
        return self._then("followed_by_any", name, Contiguity.ANY)

    def not_next(self, name: str) -> Pattern:
        """The very next event must not fit."""
        return self._not("not_next", name, Negation.NEXT)

    def not_followed_by(self, name: str) -> Pattern:
        """No event that fits may come before the next step's. As the last step: none within the pattern's time."""
        return self._not("not_followed_by", name, Negation.FOLLOWED_BY)

    def _then(self, method: str, name: str | Pattern, contiguity: Contiguity) -> Pattern:
        return _of(self, _part(method, name, contiguity), self._skip)

    def _not(self, method: str, name: str, negation: Negation) -> Pattern:
        if not isinstance(name, str):
            raise PatternError(f"{method}() expects the name of a step, found {name!r}; a group cannot be negative")
        return Pattern(self, Step(_name(method, name), negation=negation), self._skip)

    # -- conditions ---------------------------------------------------------------------------------------------------

    def where(self, condition: Any) -> Self:
        """Events must also fit `condition`: a function of the event, or of the event and a context; an object; or an
        expression of the Table API over the event's fields.
        """
        return self._and("where", self._step("where"), condition)

    def or_where(self, condition: Any) -> Self:
        """Events that fit `condition` will do as well. `or` in Flink, which Python has a use for."""
        step = self._step("or_where")
        added = _condition("or_where", step.name, condition)
        self._part = replace(
            step, condition=added if isinstance(step.condition, Always) else Either(step.condition, added)
        )
        return self

    def subtype(self, subtype_class: type) -> Self:
        """Events must also be objects of this class."""
        step = self._step("subtype")
        if not isinstance(subtype_class, type):
            raise PatternError(f"subtype() of step '{step.name}' expects a class, found {subtype_class!r}")
        return self._and("subtype", step, Subtype(subtype_class))

    def until(self, condition: Any) -> Self:
        """End the loop: it takes no event that fits `condition`, and none after it."""
        step = self._step("until")
        if step.most is not None:
            raise PatternError(
                f"until() of step '{step.name}', which is no loop; it ends one_or_more() and times_or_more()"
            )
        if step.until is not None:
            raise PatternError(f"step '{step.name}' already has an until(); use one condition with `or` in it")
        self._part = replace(step, until=_condition("until", step.name, condition))
        return self

    def _and(self, method: str, step: Step, condition: Any) -> Self:
        added = _condition(method, step.name, condition)
        known = step.condition
        self._part = replace(step, condition=added if isinstance(known, Always) else Both(known, added))
        return self

    # -- how often ----------------------------------------------------------------------------------------------------

    def one_or_more(self, window_time: DurationLike | None = None) -> Self:
        """One event or more. `window_time`: from one of them to the next."""
        return self._repeat("one_or_more", 1, None, window_time)

    def times(self, from_: int, to: int | None = None, window_time: DurationLike | None = None) -> Self:
        """That many events, or between `from_` and `to` of them. `window_time`: from one of them to the next."""
        _number("times", from_, 1)
        if to is not None:
            _number("times", to, 1)
            if from_ > to:
                raise PatternError(f"times({from_}, {to}): the first number must not be above the second")
        return self._repeat("times", from_, from_ if to is None else to, window_time)

    def times_or_more(self, times: int, window_time: DurationLike | None = None) -> Self:
        """That many events or more."""
        return self._repeat("times_or_more", _number("times_or_more", times, 1), None, window_time)

    def optional(self) -> Self:
        """A match may do without the step."""
        part = self._positive("optional")
        if part.optional:
            raise PatternError(f"{_named(part)} is optional already")
        self._part = replace(part, optional=True)
        return self

    def greedy(self) -> Self:
        """Repeat as often as possible: an event that the loop can take is taken for no later step."""
        part = self._positive("greedy")
        if isinstance(part, Group):
            raise PatternError("greedy() of a group has no meaning; make the loops inside it greedy")
        if part.least == part.most:
            raise PatternError(
                f"greedy() of step '{part.name}', which takes a fixed number of events; call one_or_more(), "
                "times(a, b) or times_or_more(n) first"
            )
        if part.inner is Contiguity.ANY:
            raise PatternError(f"greedy() of step '{part.name}' contradicts its allow_combinations()")
        if part.greedy:
            raise PatternError(f"step '{part.name}' is greedy already")
        self._part = replace(part, greedy=True)
        return self

    def consecutive(self) -> Self:
        """No other event may come between those of the loop."""
        return self._inner("consecutive", Contiguity.STRICT)

    def allow_combinations(self) -> Self:
        """The loop may leave out events that fit: all combinations match."""
        part = self._part
        if isinstance(part, Step) and part.greedy:
            raise PatternError(f"allow_combinations() of step '{part.name}' contradicts its greedy()")
        return self._inner("allow_combinations", Contiguity.ANY)

    def _repeat(self, method: str, least: int, most: int | None, window_time: DurationLike | None) -> Self:
        part = self._positive(method)
        if part.loops or part.least != 1:
            raise PatternError(f"{method}() of {_named(part)}, which already says how often it is repeated")
        gap_ms = None if window_time is None else _duration(f"{method}(): window_time", window_time)
        self._part = replace(part, least=least, most=most, inner_gap_ms=gap_ms)
        return self

    def _inner(self, method: str, inner: Contiguity) -> Self:
        part = self._positive(method)
        if not part.loops:
            raise PatternError(f"{method}() of {_named(part)}, which is no loop: it is about the events between them")
        if part.inner is not Contiguity.RELAXED:
            raise PatternError(f"{method}() of {_named(part)}, whose loop is '{part.inner.name.lower()}' already")
        self._part = replace(part, inner=inner)
        return self

    # -- time ---------------------------------------------------------------------------------------------------------

    def within(self, duration: DurationLike, within_type: WithinType = WithinType.FIRST_AND_LAST) -> Self:
        """Limit the time from the first to the last event; or from the event before to those of this step.

        The limit itself is too late. Of several limits of the first kind, the smallest holds.
        """
        millis = _duration("within()", duration)
        if within_type is WithinType.FIRST_AND_LAST:
            self._within_ms = millis
        elif within_type is not WithinType.PREVIOUS_AND_CURRENT:
            raise PatternError(f"within() expects a WithinType, found {within_type!r}")
        elif self._previous is None and not self._part.loops:
            raise PatternError(f"within(PREVIOUS_AND_CURRENT) of {_named(self._part)}, before which there is no event")
        else:
            self._part = replace(self._part, gap_ms=millis)
        return self

    # -- the whole ----------------------------------------------------------------------------------------------------

    def get_name(self) -> str:
        """The last step's name."""
        return self._step("get_name").name

    def get_previous(self) -> Pattern | None:
        """The pattern without its last step."""
        return self._previous

    def get_after_match_skip_strategy(self) -> AfterMatchSkipStrategy:
        return self._skip

    def steps(self) -> PatternSteps:
        """The pattern as data, checked as a whole: `PatternError` says what cannot be."""
        patterns = self._chain()
        limits = [each._within_ms for each in patterns if each._within_ms is not None]
        return PatternSteps(tuple(each._part for each in patterns), self._skip, min(limits, default=None))

    def explain(self) -> str:
        """The compiled pattern as text: each position, and what may happen there."""
        from headwater.cep.explain import explain

        return explain(self)

    def to_dot(self) -> str:
        """The compiled pattern as a graph in the language of Graphviz."""
        from headwater.cep.explain import to_dot

        return to_dot(self)

    def _chain(self) -> list[Pattern]:
        chain: list[Pattern] = [self]
        while (previous := chain[-1]._previous) is not None:
            chain.append(previous)
        return chain[::-1]

    def _step(self, method: str) -> Step:
        if isinstance(self._part, Group):
            raise PatternError(f"{method}() of a group; call it on the steps inside")
        return self._part

    def _positive(self, method: str) -> Part:
        if isinstance(self._part, Step) and self._part.negation is not None:
            raise PatternError(
                f"{method}() of step '{self._part.name}', which must not happen; only a step that happens can have it"
            )
        return self._part

    def __repr__(self) -> str:
        return f"Pattern({' '.join(_named(each._part) for each in self._chain())})"


class GroupPattern(Pattern):
    """A pattern whose last step is a group: it has no conditions of its own."""


def _of(previous: Pattern | None, part: Part, skip: AfterMatchSkipStrategy) -> Pattern:
    return (GroupPattern if isinstance(part, Group) else Pattern)(previous, part, skip)


def _part(method: str, given: str | Pattern, contiguity: Contiguity) -> Part:
    if isinstance(given, Pattern):
        if any(each._within_ms is not None for each in given._chain()):
            raise PatternError(f"{method}() got a group with within(...); call it on the whole pattern")
        if given._skip.skips:
            raise PatternError(f"{method}() got a group with {given._skip}; only the whole pattern can skip")
        return Group(tuple(each._part for each in given._chain()), contiguity)
    return Step(_name(method, given), contiguity)


def _name(method: str, name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise PatternError(f"{method}() expects the name of a step, or a pattern, found {name!r}")
    return name


def _condition(method: str, step: str, given: Any) -> Condition:
    if not callable(given) and "headwater.table.expression" in sys.modules:
        from headwater.cep.row_condition import row_condition
        from headwater.table.expression import Expression

        if isinstance(given, Expression):
            return row_condition(method, step, given)
    return condition_of(method, step, given)


def _named(part: Part) -> str:
    if isinstance(part, Step):
        return f"step '{part.name}'"
    return f"the group ({', '.join(_named(inner) for inner in part.steps)})"


def _number(method: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise PatternError(f"{method}() expects a number of events from {least} on, found {value!r}")
    return value


def _duration(name: str, duration: DurationLike) -> int:
    try:
        millis = to_millis(duration, name, minimum=1)
    except ConfigurationError as error:
        raise PatternError(str(error)) from None
    if millis > LONGEST_MS:
        raise PatternError(f"{name}: {millis} ms are more than a thousand years; leave it out for no limit")
    return millis
