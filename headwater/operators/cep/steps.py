"""A pattern as data: its steps in order, and what holds for the whole. `headwater.cep.Pattern` builds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from zlib import crc32

from headwater.common.errors import PatternError
from headwater.operators.cep.conditions import Always, Condition
from headwater.operators.cep.skip import AfterMatchSkipStrategy


class Contiguity(Enum):
    """Which events may lie between the event before and the event of a step."""

    STRICT = "next"
    """None."""
    RELAXED = "followed_by"
    """Any that do not fit the step: the first that fits is taken."""
    ANY = "followed_by_any"
    """Any, also those that fit: each of them starts a match of its own."""


class Negation(Enum):
    """A step that must not happen."""

    NEXT = "not_next"
    """Not as the very next event."""
    FOLLOWED_BY = "not_followed_by"
    """Not before the next step's event; as the last step, not within the pattern's time."""


@dataclass(frozen=True)
class Step:
    """One step: events that fit `condition`, at least `least` and at most `most` (None: no limit) of them."""

    name: str
    contiguity: Contiguity = Contiguity.RELAXED
    condition: Condition = field(default_factory=Always)
    negation: Negation | None = None
    least: int = 1
    most: int | None = 1
    optional: bool = False
    greedy: bool = False
    inner: Contiguity = Contiguity.RELAXED
    """Between two events of a loop."""
    until: Condition | None = None
    """The loop takes no event that fits this, and ends there."""
    gap_ms: int | None = None
    """The event must come less than this after the event before it."""
    inner_gap_ms: int | None = None
    """The same, between two events of a loop only."""

    @property
    def loops(self) -> bool:
        return self.most != 1


@dataclass(frozen=True)
class Group:
    """A sequence of steps that is repeated, or left out, as a whole."""

    steps: tuple[Step | Group, ...]
    contiguity: Contiguity = Contiguity.RELAXED
    least: int = 1
    most: int | None = 1
    optional: bool = False
    inner: Contiguity = Contiguity.RELAXED
    gap_ms: int | None = None
    inner_gap_ms: int | None = None

    @property
    def loops(self) -> bool:
        return self.most != 1


Part = Step | Group


@dataclass(frozen=True)
class PatternSteps:
    """A whole pattern. Making one checks what can only be said of the whole; `PatternError` says what is wrong."""

    parts: tuple[Part, ...]
    skip: AfterMatchSkipStrategy = field(default_factory=AfterMatchSkipStrategy.no_skip)
    within_ms: int | None = None
    """From the first event on: a match is complete before this much time has passed."""

    def __post_init__(self) -> None:
        names = [step.name for step in all_steps(self.parts)]
        for name in names:
            if names.count(name) > 1:
                raise PatternError(f"two steps are named '{name}'; matches list events by step: give each its own name")
        for last in _negative_ends(self.parts):
            if self.within_ms is None and last.gap_ms is None:
                raise PatternError(
                    f"not_followed_by('{last.name}') may be the last step, but the pattern has no within(...): nobody "
                    "could ever say that the event did not come; call within(duration)"
                )
        target = self.skip.target
        if target is not None and target not in names:
            raise PatternError(
                f"the pattern skips to step '{target}', which it does not have; its steps are {', '.join(names)}"
            )
        if target is not None and any(step.name == target and step.negation for step in all_steps(self.parts)):
            raise PatternError(f"the pattern skips to step '{target}', which is a negative one: it has no events")
        for group in _groups(self.parts):
            if all(can_be_left_out(part) for part in group.steps):
                raise PatternError(
                    f"all steps of the group ({', '.join(step.name for step in all_steps(group.steps))}) are optional; "
                    "make the group optional instead"
                )

    @property
    def shape(self) -> int:
        """Equal for patterns whose partial matches mean the same. Conditions are not part of it: code may be mended."""
        return crc32(repr(([_shape(part) for part in self.parts], self.within_ms is None)).encode())


def all_steps(parts: Sequence[Part]) -> Iterator[Step]:
    """The steps in order, those in groups too."""
    for part in parts:
        if isinstance(part, Group):
            yield from all_steps(part.steps)
        else:
            yield part


def can_be_left_out(part: Part) -> bool:
    """True if a match need not have an event of it."""
    return part.optional or (isinstance(part, Step) and part.negation is not None)


def _negative_ends(parts: Sequence[Part]) -> Iterator[Step]:
    """The `not_followed_by` steps after which a match may have no event: only steps that may be left out follow."""
    for part in reversed(parts):
        if isinstance(part, Group):
            yield from _negative_ends(part.steps)
        elif part.negation is Negation.FOLLOWED_BY:
            yield part
        if not can_be_left_out(part):
            return


def _groups(parts: Sequence[Part]) -> Iterator[Group]:
    for part in parts:
        if isinstance(part, Group):
            yield part
            yield from _groups(part.steps)


def _shape(part: Part) -> tuple[object, ...]:
    quantity = (part.contiguity.value, part.least, part.most, part.optional, part.inner.value)
    if isinstance(part, Group):
        return (*quantity, tuple(_shape(inner) for inner in part.steps))
    return (*quantity, part.name, part.greedy, part.negation and part.negation.value, part.until is not None)
