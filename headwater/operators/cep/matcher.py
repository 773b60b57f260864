"""Finds the matches of one pattern among the events of one key, event by event, in state.

The partial matches of a key are one flat tuple of numbers: a head, then the fields of each partial match. An event that
changes none of them writes nothing. A key without partial matches has no state at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headwater.common.errors import PatternError, StateMigrationError
from headwater.operators.cep.buffer import NO_ENTRY, SharedBuffer
from headwater.operators.cep.conditions import IterativeCondition
from headwater.operators.cep.nfa import Kind, Nfa, Option, Position
from headwater.operators.cep.steps import Contiguity, all_steps
from headwater.state.api import MapState, ValueState
from headwater.state.copying import captured

HEAD = 3
"""The head of the tuple: (the pattern's shape, the next id, when to look for partial matches whose time is over)."""
WIDTH = 6
"""The fields of a partial match, which follow: those of `Run`."""
HELD = -1
"""Instead of a position: a complete match that waits, because one that began earlier may still come."""
NEVER = 1 << 62
NO_STEP = -1

Match = dict[str, list[Any]]
"""{step: its events}, in the order of the events."""


class Run(NamedTuple):
    """A partial match."""

    position: int
    live: int
    """The options that are left, as bits (see `Position.all_live`)."""
    entry: int
    start_id: int
    start_ms: int
    before_ms: int
    """The timestamp of its last event."""
    step: int = NO_STEP
    """Not stored. The step that has just taken the current event: `entry` is then the entry before."""


class Found(NamedTuple):
    """A match, or a partial match that ran out of time."""

    match: Match
    timestamp: int
    timed_out: bool


class ConditionFailed(Exception):
    """A user's condition raised; `__cause__` is what it raised."""

    def __init__(self, step: str) -> None:
        super().__init__(step)
        self.step = step


@dataclass
class MatcherStates:
    """The three states of a matcher, of the current key."""

    runs: ValueState[Any]
    entries: MapState[Any, Any]
    events: MapState[Any, Any]


class _Context(IterativeCondition.Context):
    """The one context object of a matcher."""

    entry = NO_ENTRY

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher

    def get_events_for_pattern(self, name: str) -> list[Any]:
        return self._matcher.events_of(self.entry, name)

    def timestamp(self) -> int | None:
        return self._matcher.timestamp

    def current_processing_time(self) -> int:
        return self._matcher.now_ms()


class Matcher:
    """One pattern's matcher, for all keys of a partition: the states follow the current key.

    `schedule(before, after)` is told when `expire` is to be called next, and when it was to be called (NEVER: not).
    Events must come in the order of their timestamps.
    """

    def __init__(
        self,
        nfa: Nfa,
        states: MatcherStates,
        schedule: Callable[[int, int], None] = lambda before, after: None,
        now_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        self.nfa = nfa
        self.now_ms = now_ms
        self.timestamp: int | None = None
        self._runs = states.runs
        self._buffer = SharedBuffer(states.entries, states.events)
        self._schedule = schedule
        self._within = nfa.pattern.within_ms
        self._skip = nfa.pattern.skip if nfa.pattern.skip.skips else None
        self._names = [step.name for step in all_steps(nfa.pattern.parts)]
        self._positions = [_Place(position, self._names) for position in nfa.positions]
        self._timed = self._within is not None or any(place.timed for place in self._positions)
        self._event: Any = None
        self._known: dict[int, Any] = {}
        """Which conditions hold for the current event, as far as they were asked and look at nothing else."""
        self._context = _Context(self)
        self._tests = [
            (function, condition.needs_context)
            for function, condition in zip(nfa.functions, nfa.conditions, strict=True)
        ]

    # -- what the operator calls --------------------------------------------------------------------------------------

    def process(self, event: Any, timestamp: int, *, begins: bool = True) -> Sequence[Found]:
        """Return the matches that `event` completes, and what runs out of time until then.

        Without `begins`, the event begins no match: those that have begun are finished.
        """
        head = self._runs.value()
        expired: Sequence[Found] = ()
        if head is not None and head[2] <= timestamp:
            expired = self.expire(timestamp)
            head = self._runs.value()
        self._event, self.timestamp = event, timestamp
        if self._known:
            self._known.clear()
        runs: list[Run] = []
        complete: list[Run] = []
        changed = False
        if head is not None:
            if head[0] != self.nfa.shape:
                raise self._other_shape()
            for at in range(HEAD, len(head), WIDTH):
                run = head[at : at + WIDTH]
                position, live, entry, start_id, start_ms, before_ms = run
                if position == HELD:
                    runs.append(run)
                    continue
                takes, stay = self._advance(self._positions[position], live, entry, timestamp - before_ms)
                if takes:
                    self._arrive(takes, entry, start_id, start_ms, timestamp, runs, complete)
                elif stay == live:
                    runs.append(run)
                    continue
                changed = True
                if stay:
                    runs.append(Run(position, stay, entry, start_id, start_ms, before_ms))
        event_id = 1 if head is None else head[1]
        takes = self._advance(self._positions[0], -1, NO_ENTRY, 0)[0] if begins else _NOTHING
        if takes:
            self._arrive(takes, NO_ENTRY, event_id, timestamp, timestamp, runs, complete)
        elif not changed:
            return expired
        found: list[Found] = [*expired]
        if complete or self._skip is not None:
            runs = self._settle(runs, complete, event_id, timestamp, found)
        self._store(head, event_id, runs, NEVER if head is None else head[2])
        return found

    def expire(self, timestamp: int) -> Sequence[Found]:
        """Return what became of the partial matches whose time is over at `timestamp`, in the order of time."""
        head = self._runs.value()
        found: list[Found] = []
        while head is not None and head[2] <= timestamp:
            if head[0] != self.nfa.shape:
                raise self._other_shape()
            due, runs, complete, next_due = head[2], [], [], NEVER
            for run in self.runs(head):
                own = self._due(run)
                if own > due:
                    runs.append(run)
                    next_due = min(next_due, own)
                elif self._positions[run.position].waits(run.live):
                    complete.append(run)
                else:
                    found.append(Found(self._match(run, 0), own, True))
            runs = self._settle(runs, complete, head[1], due, found)
            self._store(head, head[1], runs, next_due)
            head = self._runs.value()
        return found

    def runs(self, head: Any = None) -> Iterator[Run]:
        """The partial matches of the current key."""
        head = self._runs.value() if head is None else head
        for at in range(HEAD, len(head or ()), WIDTH):
            yield Run(*head[at : at + WIDTH])

    def has_runs(self) -> bool:
        """True if the current key has partial matches."""
        return self._runs.value() is not None

    def forget(self) -> None:
        """Drop all partial matches of the current key."""
        if (head := self._runs.value()) is not None:
            self._store(head, head[1], [], NEVER)

    def events_of(self, entry: int, name: str) -> list[Any]:
        """The events that the partial match which ends with `entry` has for a step."""
        if name not in self._names:
            raise PatternError(f"get_events_for_pattern('{name}'): the steps are {', '.join(self._names)}")
        step, event = self._names.index(name), self._buffer.event
        return [event(event_id) for taken, event_id in self._buffer.path(entry) if taken == step]

    def partial_match(self, run: Run) -> Match:
        """The events of a stored partial match."""
        return self._match(run, 0)

    # -- one event ----------------------------------------------------------------------------------------------------

    def _advance(self, place: _Place, live: int, entry: int, gap_ms: int) -> tuple[Sequence[_Choice], int]:
        """What the current event does to a partial match: which options take it, and the bits of those that stay."""
        holds = self._holds
        takes: list[_Choice] | None = None
        stay = 0
        for choice in place.choices:
            if not live & choice.bit or (choice.gap_ms is not None and gap_ms >= choice.gap_ms):
                continue
            self._context.entry = entry
            try:
                if choice.rare and not self._may(choice, live):
                    continue
                if choice.kind is not Kind.TAKE:
                    if choice.kind is Kind.NEXT_EVENT:
                        takes = [choice] if takes is None else [*takes, choice]
                    elif not any(map(holds, choice.not_before)):
                        stay |= choice.bit
                    continue
                fits = choice.condition is None or holds(choice.condition)
                ends = choice.until is not None and holds(choice.until)
                forbidden = choice.not_before and any(map(holds, choice.not_before))
                if fits and not ends and not (forbidden and choice.inner):
                    if takes is None:
                        takes = [choice]
                    else:
                        takes.append(choice)
                if (
                    (choice.ignores_all or (choice.ignores and not fits))
                    and not (ends and choice.inner)
                    and not forbidden
                ):
                    stay |= choice.bit
                if choice.greedy and fits and not ends:
                    break
            except PatternError:
                raise
            except Exception as error:
                raise ConditionFailed(choice.name) from error
        return (takes if takes is not None else _NOTHING), stay

    def _may(self, choice: _Choice, live: int) -> bool:
        """False if a `not_next` forbids the current event."""
        return not (live & 1 and any(map(self._holds, choice.not_next)))

    def _holds(self, index: int) -> Any:
        known = self._known
        if index in known:
            return known[index]
        function, needs_context = self._tests[index]
        if function is None:
            return True
        if needs_context:
            return function(self._event, self._context)
        known[index] = result = function(self._event)
        return result

    def _arrive(
        self,
        takes: Sequence[_Choice],
        entry: int,
        start_id: int,
        start_ms: int,
        timestamp: int,
        runs: list[Run],
        complete: list[Run],
    ) -> None:
        """Add what a partial match becomes when options take the current event."""
        for choice in takes:
            if choice.kind is Kind.NEXT_EVENT:
                complete.append(Run(HELD, 0, entry, start_id, start_ms, timestamp))
                continue
            target = self._positions[choice.target]
            if target.accepts:
                complete.append(Run(HELD, 0, entry, start_id, start_ms, timestamp, choice.step))
            if target.choices:
                runs.append(Run(choice.target, target.all_live, entry, start_id, start_ms, timestamp, choice.step))

    # -- matches ------------------------------------------------------------------------------------------------------

    def _settle(
        self, runs: list[Run], complete: list[Run], event_id: int, timestamp: int, found: list[Found]
    ) -> list[Run]:
        """Hand out the matches that may be handed out. Return the partial matches, and matches that wait, after it."""
        skip = self._skip
        if skip is None:
            found += [Found(self._match(run, event_id), timestamp, False) for run in complete]
            return runs
        waiting = [run for run in runs if run[0] == HELD] + complete
        if not waiting:
            return runs
        waiting.sort(key=_start)
        runs = [run for run in runs if run[0] != HELD]
        while waiting:
            first = Run(*waiting[0])
            if runs and min(map(_start, runs)) < first.start_id:
                break
            del waiting[0]
            path = self._path(first, event_id)
            found.append(Found(self._gathered(path, event_id), timestamp, False))
            kept_from = skip.kept_from([(self._names[step], taken) for step, taken in path])
            if kept_from is not None:
                runs = [run for run in runs if run[3] >= kept_from]
                waiting = [run for run in waiting if run[3] >= kept_from]
        return [Run(HELD, 0, *run[2:]) for run in waiting] + runs

    def _path(self, run: Run, event_id: int) -> list[tuple[int, int]]:
        path = self._buffer.path(run.entry)
        if run.step != NO_STEP:
            path.append((run.step, event_id))
        return path

    def _match(self, run: Run, event_id: int) -> Match:
        return self._gathered(self._path(run, event_id), event_id)

    def _gathered(self, path: list[tuple[int, int]], current: int) -> Match:
        match: Match = {}
        names, event = self._names, self._buffer.event
        for step, event_id in path:
            # The current event may not be stored. It is in no entry of an earlier event, so its id tells it.
            value = captured(self._event) if event_id == current else event(event_id)
            name = names[step]
            if name in match:
                match[name].append(value)
            else:
                match[name] = [value]
        return match

    # -- state --------------------------------------------------------------------------------------------------------

    def _due(self, run: Run) -> int:
        """When the time of a partial match is over."""
        if run.position == HELD:
            return NEVER
        due = NEVER if self._within is None else run.start_ms + self._within
        place = self._positions[run.position]
        return min(due, run.before_ms + place.longest_gap(run.live)) if place.timed else due

    def _store(self, head: Any, event_id: int, runs: Sequence[Run], due: int) -> None:
        """Store what is left. `due`: when the time of those that were there before is over, or earlier."""
        if not runs:
            if head is not None:
                self._runs.clear()
                self._buffer.clear()
                if self._timed:
                    self._schedule(head[2], NEVER)
            return
        references: dict[int, int] = {}  # {entry: how many more}
        if head is not None:
            for at in range(HEAD + 2, len(head), WIDTH):
                references[head[at]] = references.get(head[at], 0) - 1
        buffer, next_id = self._buffer, event_id
        stored: list[int] = []
        for run in runs:
            entry = run[2]
            references[entry] = references.get(entry, 0) + 1
            if len(run) > WIDTH:
                if self._timed and (own := self._due(run)) < due:
                    due = own
                if run[WIDTH] != NO_STEP:
                    buffer.add(next_id, run[WIDTH], event_id, entry)
                    entry = next_id
                    next_id += 1
            stored += (run[0], run[1], entry, run[3], run[4], run[5])
        if next_id > event_id:
            buffer.add_event(event_id, self._event, next_id - event_id)
        for entry, count in references.items():
            if count > 0:
                buffer.hold(entry, count)
            elif count < 0:
                buffer.release(entry)
        self._runs.update((self.nfa.shape, next_id, due, *stored))
        before = NEVER if head is None else head[2]
        if self._timed and due != before:
            self._schedule(before, due)

    def _other_shape(self) -> StateMigrationError:
        return StateMigrationError(
            "the state has partial matches of a pattern with other steps, which this one cannot go on with; "
            "give the operator a new uid to begin without them"
        )


_NOTHING: Sequence[Any] = ()


class _Choice:
    """An option as the matcher reads it, field by field, for each event."""

    __slots__ = (
        "bit", "condition", "gap_ms", "greedy", "ignores", "ignores_all", "inner", "kind", "name", "not_before",
        "not_next", "rare", "step", "target", "until",
    )  # fmt: skip

    def __init__(self, option: Option, bit: int, names: list[str]) -> None:
        self.bit = bit
        self.kind = option.kind
        self.name = "" if option.step is None else option.step.name
        self.step = NO_STEP if option.step is None else names.index(option.step.name)
        self.condition = option.condition
        self.until = option.until
        self.inner = option.inner
        self.ignores = option.contiguity is Contiguity.RELAXED
        self.ignores_all = option.contiguity is Contiguity.ANY
        self.not_before = option.not_before
        self.not_next = option.not_next
        self.rare = bool(option.not_next)
        self.greedy = option.greedy
        self.gap_ms = option.gap_ms
        self.target = option.target


class _Place:
    """A position as the matcher reads it."""

    __slots__ = ("accepts", "all_live", "choices", "timed")

    def __init__(self, position: Position, names: list[str]) -> None:
        self.choices = [_Choice(option, 2 << index, names) for index, option in enumerate(position.options)]
        self.accepts = position.accepts
        self.all_live = position.all_live
        self.timed = any(choice.gap_ms is not None for choice in self.choices)

    def waits(self, live: int) -> bool:
        """True if the match is complete when its time is over."""
        return any(choice.kind is Kind.END_OF_TIME and live & choice.bit for choice in self.choices)

    def longest_gap(self, live: int) -> int:
        """How long after its last event a partial match with these options can go on."""
        gaps = [choice.gap_ms for choice in self.choices if live & choice.bit]
        return NEVER if None in gaps else max(gap for gap in gaps if gap is not None)


def _start(run: Run) -> int:
    return run[3]
