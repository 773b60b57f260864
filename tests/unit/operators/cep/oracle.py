"""All matches of a pattern by brute force, from what a pattern means.

Every way to read the pattern is written out as a plan: which steps, how often each. Every choice of events for a plan
is tried, and each rule is checked on the events themselves. Nothing here steps through an automaton.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from headwater.operators.cep.conditions import Always, Both, Either, Test
from headwater.operators.cep.skip import AfterMatchSkipStrategy
from headwater.operators.cep.steps import Contiguity, Group, Negation, Part, PatternSteps, Step

FOREVER = 1 << 60

Place = tuple[tuple[int, int], ...]
"""(index, repetition), from the outermost sequence inwards: earlier in the pattern is smaller."""


@dataclass(frozen=True)
class Between:
    """What is said about the events between two slots of a plan."""

    not_before: tuple[Any, ...] = ()
    not_next: tuple[Any, ...] = ()
    gap_ms: int | None = None
    """Of a `not_followed_by` that ends the pattern."""
    greedy: tuple[Slot, ...] = ()
    """Loops that could have been continued, or begun, instead."""


@dataclass(frozen=True)
class Slot:
    """One event of a plan."""

    step: Step
    place: Place
    contiguity: Contiguity
    gap_ms: int | None
    inner: bool
    between: Between


@dataclass(frozen=True)
class Plan:
    slots: tuple[Slot, ...]
    end: Between


After = Callable[[Between, int], Iterator[Plan]]


def plans(parts: tuple[Part, ...], budget: int) -> Iterator[Plan]:
    """All plans with at most `budget` events, and at least one."""

    def end(between: Between, left: int) -> Iterator[Plan]:
        yield Plan((), between)

    for plan in _sequence(parts, 0, (), Between(), budget, end, None, None):
        if plan.slots:
            yield plan


def _sequence(
    parts: tuple[Part, ...], at: int, path: Place, between: Between, left: int, after: After, head: Any, gap: Any
) -> Iterator[Plan]:
    if at == len(parts):
        yield from after(between, left)
        return
    part = parts[at]

    def leave(between: Between, left: int) -> Iterator[Plan]:
        return _sequence(parts, at + 1, path, between, left, after, None, None)

    if isinstance(part, Step) and part.negation is not None:
        yield from leave(_negated(between, part), left)
        return
    contiguity = part.contiguity if head is None else head
    gap_ms = part.gap_ms if gap is None else gap
    inner_gap = part.gap_ms if part.inner_gap_ms is None else part.inner_gap_ms
    if isinstance(part, Step):
        follower = parts[at + 1] if at + 1 < len(parts) else None
        own = Between()
        if isinstance(follower, Step) and follower.negation is not None:
            own = _negated(own, follower)  # what must not follow a loop must not come between its events either
        slots: tuple[Slot, ...] = ()
        for count in range(1, left + 1 if part.most is None else min(left, part.most) + 1):
            place = (*path, (at, count))
            if count == 1:
                slots = (Slot(part, place, contiguity, gap_ms, False, between),)
            else:
                could_leave = count > part.least and not part.greedy
                inside = own if could_leave else replace(own, not_next=())
                slots += (Slot(part, place, part.inner, inner_gap, True, inside),)
            if count < part.least:
                continue
            more = Slot(part, (*path, (at, count + 1)), part.inner, inner_gap, True, replace(own, not_next=()))
            again = part.most is None or count < part.most
            onward = Between(greedy=(more,) if part.greedy and again else ())
            for plan in leave(onward, left - count):
                yield Plan(slots + plan.slots, plan.end)
        if part.optional:
            first = Slot(part, (*path, (at, 1)), contiguity, gap_ms, False, between)
            passed = (*between.greedy, first) if part.greedy else between.greedy
            yield from leave(replace(between, greedy=passed), left)
        return

    group = part

    def repetition(number: int, between: Between, left: int, head: Contiguity, gap: int | None) -> Iterator[Plan]:
        def done(between: Between, left: int) -> Iterator[Plan]:
            again = group.most is None or number < group.most
            if again and left:
                yield from repetition(number + 1, between, left, group.inner, inner_gap)
            if number >= group.least:
                passed = tuple(_greedy_heads(group, group.inner, inner_gap, between)) if again else ()
                yield from leave(replace(between, greedy=between.greedy + passed), left)

        yield from _sequence(group.steps, 0, (*path, (at, number)), between, left, done, head, gap)

    yield from repetition(1, between, left, contiguity, gap_ms)
    if group.optional:
        passed = tuple(_greedy_heads(group, contiguity, gap_ms, between))
        yield from leave(replace(between, greedy=between.greedy + passed), left)


def _negated(between: Between, step: Step) -> Between:
    if step.negation is Negation.NEXT:
        return replace(between, not_next=(*between.not_next, step.condition))
    return replace(between, not_before=(*between.not_before, step.condition), gap_ms=step.gap_ms)


def _greedy_heads(group: Group, head: Contiguity, gap: int | None, between: Between) -> Iterator[Slot]:
    """The greedy loops that a group may begin with."""
    for index, part in enumerate(group.steps):
        if isinstance(part, Step) and part.negation is not None:
            between = _negated(between, part)
            continue
        contiguity, gap_ms = (head, gap) if index == 0 and gap is not None else (part.contiguity, part.gap_ms)
        if index == 0:
            contiguity = head
        if isinstance(part, Group):
            yield from _greedy_heads(part, contiguity, gap_ms, between)
        elif part.greedy:
            yield Slot(part, (), contiguity, gap_ms, False, between)
        if not part.optional:
            return


def _least(parts: tuple[Part, ...]) -> int:
    """No plan needs more events than this beyond those that there are."""
    return sum(part.least * (_least(part.steps) if isinstance(part, Group) else 1) for part in parts)


class Event(NamedTuple):
    letters: str
    timestamp: int


Taken = tuple[tuple[str, int], ...]
"""(step name, index of the event)"""

Instant = tuple[int, int, int]
"""(time, 0 if time passes and 1 if an event comes, which event)"""


@dataclass(frozen=True)
class Complete:
    at: Instant
    start: int
    rank: tuple[Any, ...]
    taken: Taken


@dataclass
class Partial:
    """A partial match: from when to when it lives."""

    born: Instant
    dies: Instant
    start: int
    taken: Taken
    timed_out: bool = False


@dataclass
class Oracle:
    pattern: PatternSteps
    events: list[Event]
    complete: list[Complete] = field(default_factory=list)
    partial: dict[Any, Partial] = field(default_factory=dict)
    completing: set[Any] = field(default_factory=set)
    """Partial matches that are complete when their time is over."""

    def __post_init__(self) -> None:
        for plan in plans(self.pattern.parts, len(self.events) + _least(self.pattern.parts)):
            self._assign(plan, 0, ())

    # -- every choice of events for a plan ----------------------------------------------------------------------------

    def _assign(self, plan: Plan, number: int, chosen: tuple[int, ...]) -> None:
        if number == len(plan.slots):
            self._end(plan, chosen)
            return
        slot = plan.slots[number]
        taken = tuple((each.step.name, index) for each, index in zip(plan.slots, chosen, strict=False))
        first = chosen[-1] + 1 if chosen else 0
        if chosen:
            self._note_partial(plan, number, chosen, taken, slot)
        for index in range(first, len(self.events)):
            if not chosen and not self._greedy_lets(slot.between, index - 1, index, taken):
                continue
            if self._can_take(slot, first - 1 if chosen else index - 1, index, taken, chosen):
                self._assign(plan, number + 1, (*chosen, index))

    def _in_time(self, chosen: tuple[int, ...], index: int, gap_ms: int | None) -> bool:
        return self.events[index].timestamp < self._deadline(chosen, gap_ms)

    def _deadline(self, chosen: tuple[int, ...], gap_ms: int | None) -> int:
        if not chosen:
            return FOREVER
        within = self.pattern.within_ms
        whole = FOREVER if within is None else self.events[chosen[0]].timestamp + within
        return min(whole, FOREVER if gap_ms is None else self.events[chosen[-1]].timestamp + gap_ms)

    def _can_take(self, slot: Slot, before: int, index: int, taken: Taken, chosen: tuple[int, ...]) -> bool:
        """The event `index` can be the slot's, if the last event was `before`."""
        return (
            self._could_take(slot, before, index, taken, chosen)
            and not (slot.inner and any(self._fits(each, index, taken) for each in slot.between.not_before))
            and (not taken or self._greedy_lets(slot.between, before, index, taken))
        )

    def _could_take(self, slot: Slot, before: int, index: int, taken: Taken, chosen: tuple[int, ...]) -> bool:
        """The same, but for what must not follow a loop: this ends a greedy loop too, but does not let it be left."""
        return (
            self._in_time(chosen, index, slot.gap_ms)
            and self._fits(slot.step.condition, index, taken)
            and not (slot.step.until is not None and self._fits(slot.step.until, index, taken))
            and not (chosen and any(self._fits(each, before + 1, taken) for each in slot.between.not_next))
            and all(self._can_ignore(slot, gap, taken) for gap in range(before + 1, index))
        )

    def _can_ignore(self, slot: Slot, gap: int, taken: Taken) -> bool:
        if slot.contiguity is Contiguity.STRICT:
            return False
        if slot.contiguity is Contiguity.RELAXED and self._fits(slot.step.condition, gap, taken):
            return False
        if slot.inner and slot.step.until is not None and self._fits(slot.step.until, gap, taken):
            return False
        return not any(self._fits(each, gap, taken) for each in slot.between.not_before)

    def _greedy_lets(self, between: Between, before: int, index: int, taken: Taken) -> bool:
        """No loop that was left, or left out, could have taken one of the events up to `index`."""
        chosen = tuple(each for _, each in taken)
        return not any(
            self._could_take(loop, before, each, taken, chosen)
            for loop in between.greedy
            for each in range(before + 1, index + 1)
        )

    def _fits(self, condition: Any, index: int, taken: Taken) -> bool:
        match condition:
            case Always():
                return True
            case Both(first, second):
                return self._fits(first, index, taken) and self._fits(second, index, taken)
            case Either(first, second):
                return self._fits(first, index, taken) or self._fits(second, index, taken)
            case Test(function):
                return function.holds(self.events[index].letters, [name for name, _ in taken])
        raise AssertionError(condition)

    # -- what becomes of it -------------------------------------------------------------------------------------------

    def _end(self, plan: Plan, chosen: tuple[int, ...]) -> None:
        taken = tuple((slot.step.name, index) for slot, index in zip(plan.slots, chosen, strict=True))
        rank = tuple((index, slot.place) for slot, index in zip(plan.slots, chosen, strict=True))
        last, end = chosen[-1], plan.end
        if not end.not_before and not end.not_next:
            self.complete.append(Complete(self._instant(last), chosen[0], rank, taken))
            return
        self._note_partial(plan, len(plan.slots), chosen, taken, None)
        if not end.not_before:
            following = last + 1
            if (
                following < len(self.events)
                and self._in_time(chosen, following, None)
                and not any(self._fits(each, following, taken) for each in end.not_next)
                and self._greedy_lets(end, last, following, taken)
            ):
                ranked = (*rank, (following, ((FOREVER, 0),)))
                self.complete.append(Complete(self._instant(following), chosen[0], ranked, taken))
            return
        deadline = self._deadline(chosen, end.gap_ms)
        if self._end_dies(end, chosen, taken, deadline) is None:
            ranked = (*rank, (FOREVER, ((FOREVER, 0),)))
            self.complete.append(Complete((deadline, 0, 0), chosen[0], ranked, taken))

    def _end_dies(self, end: Between, chosen: tuple[int, ...], taken: Taken, deadline: int) -> Instant | None:
        """When waiting for the end of time fails; None: it does not."""
        last = chosen[-1]
        for index in range(last + 1, len(self.events)):
            if self.events[index].timestamp >= deadline:
                return None
            if (
                any(self._fits(each, index, taken) for each in end.not_before)
                or (index == last + 1 and any(self._fits(each, index, taken) for each in end.not_next))
                or not self._greedy_lets(end, last, index, taken)
            ):
                return self._instant(index)
        return None

    def _note_partial(self, plan: Plan, number: int, chosen: tuple[int, ...], taken: Taken, slot: Slot | None) -> None:
        """A partial match lives as long as one of the ways to go on does."""
        key = (chosen, tuple(each.place for each in plan.slots[:number]))
        known = self.partial.get(key)
        if known is None:
            born = self._instant(chosen[-1])
            known = self.partial[key] = Partial(born, born, chosen[0], taken)
        last = chosen[-1]
        if slot is None and not plan.end.not_before:
            dies = self._instant(last + 1) if last + 1 < len(self.events) else (FOREVER, 0, 0)
            dies = min(dies, (self._deadline(chosen, None), 0, 0))
            by_time = dies[1] == 0
        elif slot is None:
            deadline = self._deadline(chosen, plan.end.gap_ms)
            dies = self._end_dies(plan.end, chosen, taken, deadline) or (deadline, 0, 0)
            by_time = False
            if dies[1] == 0:
                self.completing.add(key)
        else:
            deadline = self._deadline(chosen, slot.gap_ms)
            dies, by_time = (deadline, 0, 0), True
            for index in range(last + 1, len(self.events)):
                if self.events[index].timestamp >= deadline:
                    break
                blocked = (
                    not self._can_ignore(slot, index, taken)
                    or (index == last + 1 and any(self._fits(each, index, taken) for each in slot.between.not_next))
                    or not self._greedy_lets(slot.between, last, index, taken)
                )
                if blocked:
                    dies, by_time = self._instant(index), False
                    break
        if dies > known.dies:
            known.dies, known.timed_out = dies, by_time

    def _instant(self, index: int) -> Instant:
        return (self.events[index].timestamp, 1, index)

    # -- results ------------------------------------------------------------------------------------------------------

    def results(self) -> tuple[list[tuple[Instant, Taken]], list[tuple[Instant, Taken]]]:
        """(matches, partial matches that ran out of time), with their instants, after skipping."""
        skip: AfterMatchSkipStrategy = self.pattern.skip
        runs = list(self.partial.values())
        instants = sorted({each.at for each in self.complete} | {run.dies for run in runs})
        kept_from = 0
        waiting: list[Complete] = []
        emitted: list[tuple[Instant, Taken]] = []
        timed_out: list[tuple[Instant, Taken]] = []
        for now in instants:
            new = [each for each in self.complete if each.at == now and each.start >= kept_from]
            for key, run in self.partial.items():
                if run.dies == now and run.timed_out and key not in self.completing and run.start >= kept_from:
                    timed_out.append((now, run.taken))
            if not skip.skips:
                emitted += [(now, each.taken) for each in new]
                continue
            waiting = sorted(waiting, key=lambda each: each.start) + sorted(new, key=lambda each: each.rank)
            waiting.sort(key=lambda each: each.start)
            while waiting:
                alive = [run.start for run in runs if run.born <= now < run.dies and run.start >= kept_from]
                if alive and min(alive) < waiting[0].start:
                    break
                match = waiting.pop(0)
                emitted.append((now, match.taken))
                kept = skip.kept_from(match.taken)
                if kept is not None:
                    kept_from = max(kept_from, kept)
                    waiting = [each for each in waiting if each.start >= kept_from]
        return emitted, timed_out
