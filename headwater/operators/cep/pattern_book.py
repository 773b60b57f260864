"""The patterns that are in force, compiled, and which of them an event may begin.

With thousands of patterns, an event is not tried on each. A pattern whose first condition says `field == constant` is
looked up by the event's field. Patterns with the same other first condition share one evaluation of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from headwater.operators.cep.conditions import Test
from headwater.operators.cep.expressions import Expression, field_of
from headwater.operators.cep.matcher import Matcher
from headwater.operators.cep.nfa import Nfa

Version = tuple[str, int]
"""(pattern id, version)"""


@dataclass(eq=False)
class PatternInForce:
    """A version of a pattern. One that is `finishing` begins no match any more."""

    version: Version
    matcher: Matcher
    finishing: bool
    number: int = 0


class PatternBook:
    """Patterns by version, and an index of those that may begin."""

    def __init__(self, patterns: list[PatternInForce]) -> None:
        self.by_version = {each.version: each for each in patterns}
        self._by_field: dict[str, dict[Any, list[PatternInForce]]] = {}
        self._by_condition: dict[Expression, list[PatternInForce]] = {}
        self._others: list[PatternInForce] = []
        for number, each in enumerate(patterns):
            each.number = number
            if not each.finishing:
                self._enter(each)

    def may_begin_with(self, event: Any) -> list[PatternInForce]:
        """The patterns that `event` may begin a match of, and some that it does not."""
        found = [*self._others]
        for field, by_value in self._by_field.items():
            try:
                found += by_value.get(field_of(event, field), ())
            except TypeError:  # a value that cannot be hashed equals no constant
                continue
        for condition, patterns in self._by_condition.items():
            if condition(event):
                found += patterns
        return found

    def _enter(self, pattern: PatternInForce) -> None:
        first = list(_first_conditions(pattern.matcher.nfa))
        if len(first) == 1 and isinstance(first[0], Expression):
            equal = first[0].equalities
            if equal:
                field, value = next(iter(equal.items()))
                self._by_field.setdefault(field, {}).setdefault(value, []).append(pattern)
            else:
                self._by_condition.setdefault(first[0], []).append(pattern)
        else:
            self._others.append(pattern)


def _first_conditions(nfa: Nfa) -> Iterator[Callable[..., Any] | None]:
    for option in nfa.positions[0].options:
        condition = nfa.conditions[option.condition] if option.condition is not None else None
        yield condition.function if isinstance(condition, Test) and not condition.needs_context else None
