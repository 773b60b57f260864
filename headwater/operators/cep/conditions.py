"""Conditions of a pattern's steps: functions of the event, or of the event and the partial match that it may extend.

A condition is a small tree, so that it can be shown and written down. `compiled` makes one callable of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headwater.common.callables import accepts, signature_text
from headwater.common.errors import PatternError, short_repr


class IterativeCondition(ABC):
    """A condition that looks at the events which the partial match has accepted so far."""

    class Context(ABC):
        """Valid only during the call it is handed to."""

        @abstractmethod
        def get_events_for_pattern(self, name: str) -> list[Any]:
            """Return the events that the partial match has accepted for the step `name`, in order."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The event's timestamp; in processing time, the epoch's."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The epoch's processing time."""

    @abstractmethod
    def filter(self, value: Any, ctx: IterativeCondition.Context) -> bool:
        """Return True if the event fits. Must not change it."""


class SimpleCondition(ABC):
    """A condition that looks at the event alone."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Return True if the event fits. Must not change it."""


class Condition:
    """Base of the tree's nodes."""

    needs_context = False


@dataclass(frozen=True)
class Always(Condition):
    """Every event."""

    def __str__(self) -> str:
        return "any event"


@dataclass(frozen=True)
class Test(Condition):
    """A user's function."""

    function: Callable[..., Any]
    needs_context: bool = False
    text: str = ""

    def __str__(self) -> str:
        return self.text or getattr(self.function, "__name__", type(self.function).__name__)


@dataclass(frozen=True)
class Subtype(Condition):
    """Events of a class."""

    cls: type

    def __str__(self) -> str:
        return f"is a {self.cls.__name__}"


@dataclass(frozen=True)
class _Pair(Condition):
    first: Condition
    second: Condition

    @property
    def needs_context(self) -> bool:  # type: ignore[override]
        return self.first.needs_context or self.second.needs_context


class Both(_Pair):
    """Both conditions hold; the second is only asked if the first does."""

    def __str__(self) -> str:
        return f"({self.first} and {self.second})"


class Either(_Pair):
    """One of the conditions holds; the second is only asked if the first does not."""

    def __str__(self) -> str:
        return f"({self.first} or {self.second})"


def condition_of(method: str, step: str, given: Any) -> Condition:
    """The condition that a user gave to `method` of `step`; `PatternError` if it can be none."""
    if isinstance(given, Condition):
        return given
    if isinstance(given, type):
        raise PatternError(
            f"{method}() of step '{step}' got the class {given.__name__}; pass an object of it, or use subtype()"
        )
    if isinstance(given, IterativeCondition):
        return Test(given.filter, True, type(given).__name__)
    if isinstance(given, SimpleCondition):
        return Test(given.filter, False, type(given).__name__)
    if not callable(given):
        raise PatternError(
            f"{method}() of step '{step}' expects a function of the event, or of the event and a context, "
            f"found {short_repr(given)}"
        )
    if accepts(given, 1):
        return Test(given)
    if accepts(given, 2):
        return Test(given, True)
    raise PatternError(
        f"{method}() of step '{step}' expects a function of the event, or of the event and a context, "
        f"found {signature_text(given)}"
    )


def compiled(condition: Condition) -> Callable[..., Any] | None:
    """One callable of (event), or of (event, context) if the condition needs one; None if it always holds."""
    match condition:
        case Always():
            return None
        case Test(function):
            return function
        case Subtype(cls):
            return lambda event: isinstance(event, cls)
        case Both(first, second):
            return _joined(first, second, condition.needs_context, both=True)
        case Either(first, second):
            return _joined(first, second, condition.needs_context, both=False)
    raise AssertionError(condition)


def _joined(first: Condition, second: Condition, context: bool, *, both: bool) -> Callable[..., Any]:
    one, two = _with_context(first, context), _with_context(second, context)
    if context:
        if both:
            return lambda event, ctx: one(event, ctx) and two(event, ctx)
        return lambda event, ctx: one(event, ctx) or two(event, ctx)
    if both:
        return lambda event: one(event) and two(event)
    return lambda event: one(event) or two(event)


def _with_context(condition: Condition, context: bool) -> Callable[..., Any]:
    function = compiled(condition)
    if function is None:
        return lambda *_: True
    if context and not condition.needs_context:
        return lambda event, _: function(event)
    return function
