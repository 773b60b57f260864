"""The patterns that are in force, compiled, and which of them an event begins.

With thousands of patterns, an event is not tried on each. A pattern whose first condition says `field == constant` is
looked up by the event's field. Patterns with the same first condition share one evaluation of it. Patterns that differ
in nothing but their first condition share a matcher, as this condition is asked here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from headwater.operators.cep.conditions import Always, Condition, Test, compiled
from headwater.operators.cep.expressions import Expression, field_of
from headwater.operators.cep.matcher import ConditionFailed, Matcher
from headwater.operators.cep.nfa import Nfa
from headwater.operators.cep.steps import PatternSteps, Step

Version = tuple[str, int]
"""(pattern id, version)"""


@dataclass(eq=False)
class PatternInForce:
    """A version of a pattern. One that is `finishing` begins no match any more."""

    version: Version
    matcher: Matcher
    opening: Condition
    """Only events that fit it begin a match."""
    finishing: bool
    number: int = 0


def without_opening(pattern: PatternSteps) -> PatternSteps:
    """The pattern with any event as its first, if its first step is nothing but one event; otherwise the pattern."""
    first = pattern.parts[0]
    if not isinstance(first, Step) or first.loops or first.optional or first.condition.needs_context:
        return pattern
    return replace(pattern, parts=(replace(first, condition=Always()), *pattern.parts[1:]))


def opening_of(nfa: Nfa) -> Condition:
    """What an event must fit to begin a match; any event, if that is more than one condition."""
    options = nfa.positions[0].options
    if len(options) > 1 or options[0].condition is None:
        return Always()
    condition = nfa.conditions[options[0].condition]
    return Always() if condition.needs_context else condition


class _Opening:
    """A first condition, and the patterns that have it. `function` None: it holds for every event that comes here."""

    def __init__(self, function: Callable[[Any], Any] | None, step: str) -> None:
        self._function = function
        self._step = step
        self.patterns: list[PatternInForce] = []

    def begun_by(self, event: Any) -> list[PatternInForce]:
        if self._function is None:
            return self.patterns
        try:
            return self.patterns if self._function(event) else []
        except Exception as error:
            raise ConditionFailed(self._step) from error


class PatternBook:
    """Patterns by version, and an index of those that may begin."""

    def __init__(self, patterns: list[PatternInForce]) -> None:
        self.by_version = {each.version: each for each in patterns}
        self._openings: dict[Condition, _Opening] = {}
        self._by_field: dict[str, dict[Any, list[_Opening]]] = {}
        self._others: list[_Opening] = []
        for number, each in enumerate(patterns):
            each.number = number
            if not each.finishing:
                opening = self._openings.get(each.opening)
                if opening is None:
                    opening = self._openings[each.opening] = self._enter(each)
                opening.patterns.append(each)

    def begun_by(self, event: Any) -> list[PatternInForce]:
        """The patterns whose first condition `event` fits."""
        found: list[PatternInForce] = []
        for field, by_value in self._by_field.items():
            try:
                openings = by_value.get(field_of(event, field), ())
            except TypeError:  # a value that cannot be hashed equals no constant
                continue
            for opening in openings:
                found += opening.begun_by(event)
        for opening in self._others:
            found += opening.begun_by(event)
        return found

    def _enter(self, pattern: PatternInForce) -> _Opening:
        condition = pattern.opening
        made = _Opening(compiled(condition), pattern.matcher.first_step)
        if isinstance(condition, Test) and isinstance(condition.function, Expression) and condition.function.equalities:
            if condition.function.is_equality:
                made = _Opening(None, pattern.matcher.first_step)
            field, value = next(iter(condition.function.equalities.items()))
            self._by_field.setdefault(field, {}).setdefault(value, []).append(made)
        else:
            self._others.append(made)
        return made
