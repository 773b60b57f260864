"""Where the search goes on after a match: which partial matches, and which other matches, a match ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from headwater.common.errors import PatternError

Taken = Sequence[tuple[str, int]]
"""(step name, event id) of a match, in order. Later events have greater ids."""


class _Kind(Enum):
    NO_SKIP = "no_skip"
    TO_NEXT = "skip_to_next"
    PAST_LAST_EVENT = "skip_past_last_event"
    TO_FIRST = "skip_to_first"
    TO_LAST = "skip_to_last"


@dataclass(frozen=True)
class AfterMatchSkipStrategy:
    """Made by its class methods. With all but `no_skip`, a match waits while one that began earlier may still come."""

    kind: _Kind
    target: str | None = None
    """The step to skip to."""
    throws_on_miss: bool = False

    @classmethod
    def no_skip(cls) -> AfterMatchSkipStrategy:
        """Emit every match."""
        return cls(_Kind.NO_SKIP)

    @classmethod
    def skip_to_next(cls) -> AfterMatchSkipStrategy:
        """Drop every other match that begins with the same event."""
        return cls(_Kind.TO_NEXT)

    @classmethod
    def skip_past_last_event(cls) -> AfterMatchSkipStrategy:
        """Drop every other match that begins before the match has ended."""
        return cls(_Kind.PAST_LAST_EVENT)

    @classmethod
    def skip_to_first(cls, pattern_name: str) -> AfterMatchSkipStrategy:
        """Drop every other match that begins before the first event of the step `pattern_name`."""
        return cls(_Kind.TO_FIRST, _name("skip_to_first", pattern_name))

    @classmethod
    def skip_to_last(cls, pattern_name: str) -> AfterMatchSkipStrategy:
        """Drop every other match that begins before the last event of the step `pattern_name`."""
        return cls(_Kind.TO_LAST, _name("skip_to_last", pattern_name))

    def throw_exception_on_miss(self) -> AfterMatchSkipStrategy:
        """Raise if a match has no event of the step to skip to, or if this is the match's own first event.

        Without it, such a match drops nothing.
        """
        if self.target is None:
            raise PatternError(
                f"throw_exception_on_miss() is for skip_to_first and skip_to_last, not {self.kind.value}"
            )
        return replace(self, throws_on_miss=True)

    @property
    def skips(self) -> bool:
        return self.kind is not _Kind.NO_SKIP

    def kept_from(self, taken: Taken) -> int | None:
        """Return the least id of a first event that another match may have; None: a match drops nothing."""
        if self.kind is _Kind.NO_SKIP:
            return None
        first = taken[0][1]
        if self.kind is _Kind.TO_NEXT:
            return first + 1
        if self.kind is _Kind.PAST_LAST_EVENT:
            return taken[-1][1] + 1
        ids = [event_id for name, event_id in taken if name == self.target]
        if not ids:
            if self.throws_on_miss:
                raise PatternError(
                    f"{self.kind.value}('{self.target}'): a match has no event of step '{self.target}', which is "
                    "optional; skip to another step (or, outside of SQL, leave out throw_exception_on_miss())"
                )
            return None
        found = ids[0 if self.kind is _Kind.TO_FIRST else -1]
        if found == first and self.throws_on_miss:
            raise PatternError(
                f"{self.kind.value}('{self.target}') would skip to the first event of the match itself, and find the "
                "same match again; skip to another step (or, outside of SQL, leave out throw_exception_on_miss())"
            )
        return found

    def __str__(self) -> str:
        return self.kind.value if self.target is None else f"{self.kind.value}('{self.target}')"


def _name(method: str, name: object) -> str:
    if not isinstance(name, str) or not name:
        raise PatternError(f"{method}() expects the name of a step, found {name!r}")
    return name
