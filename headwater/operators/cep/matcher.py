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
    """A partial match, as it is stored."""

    position: int
    live: int
    """The options that are left, as bits (see `Position.all_live`)."""
    entry: int
    start_id: int
    start_ms: int
    before_ms: int
    """The timestamp of its last event."""


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
        self.first_step = self._names[0]
        self._positions = _places(nfa, self._names)
        self._begin = self._positions[0].only
        self._step = _Step()
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
        known = self._known
        if known:
            known.clear()
        step = self._step
        step.begin(timestamp)
        if head is not None:
            if head[0] != self.nfa.shape:
                raise self._other_shape()
            places, runs = self._positions, step.runs
            for at in range(HEAD, len(head), WIDTH):
                position = head[at]
                if position == HELD:
                    runs.append(head[at : at + WIDTH])
                    continue
                only = places[position].only
                if only is None:
                    self._advance(places[position], head[at : at + WIDTH], step)
                elif known[only.condition] if only.condition in known else self._fits(only, head[at + 2]):
                    made = step.take(only, head[at + 2], head[at + 3], head[at + 4])
                    if only.ignores_all:
                        runs.append(head[at : at + WIDTH])
                        made += 1
                    if made > 1:
                        step.held += [head[at + 2]] * (made - 1)
                elif only.strict:
                    step.changed = True
                    step.released.append(head[at + 2])
                else:
                    runs.append(head[at : at + WIDTH])
        event_id = 1 if head is None else head[1]
        if begins:
            only = self._begin
            if only is None:
                self._advance(self._positions[0], (0, -1, NO_ENTRY, event_id, timestamp, timestamp), step)
            elif known[only.condition] if only.condition in known else self._fits(only, NO_ENTRY):
                step.take(only, NO_ENTRY, event_id, timestamp)
        if not step.changed:
            return expired
        found: list[Found] = [*expired]
        if step.complete or (self._skip is not None and head is not None):
            self._settle(step, event_id, timestamp, found)
        self._store(head, event_id, step, NEVER if head is None else head[2])
        return found

    def expire(self, timestamp: int) -> Sequence[Found]:
        """Return what became of the partial matches whose time is over at `timestamp`, in the order of time."""
        head = self._runs.value()
        found: list[Found] = []
        step = self._step
        while head is not None and head[2] <= timestamp:
            if head[0] != self.nfa.shape:
                raise self._other_shape()
            due, next_due = head[2], NEVER
            step.begin(due)
            for run in self.runs(head):
                own = self._due(run)
                if own > due:
                    step.runs.append(run)
                    next_due = min(next_due, own)
                elif self._positions[run.position].waits(run.live):
                    step.complete.append((*run, NO_STEP))
                else:
                    found.append(Found(self._match(run.entry, NO_STEP, 0), own, True))
                    step.released.append(run.entry)
            self._settle(step, head[1], due, found)
            self._store(head, head[1], step, next_due)
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

    def events_of(self, entry: int, name: str) -> list[Any]:
        """The events that the partial match which ends with `entry` has for a step."""
        if name not in self._names:
            raise PatternError(f"get_events_for_pattern('{name}'): the steps are {', '.join(self._names)}")
        step, event = self._names.index(name), self._buffer.event
        return [event(event_id) for taken, event_id in self._buffer.path(entry) if taken == step]

    # -- one event ----------------------------------------------------------------------------------------------------

    def _fits(self, only: _Choice, entry: int) -> Any:
        """Ask the condition of a position with one plain option. Positions that an event meets often have one."""
        if only.condition is None:
            return True
        self._context.entry = entry
        try:
            return self._holds(only.condition)
        except PatternError:
            raise
        except Exception as error:
            raise ConditionFailed(only.name) from error

    def _advance(self, place: _Place, run: _Fields, step: _Step) -> None:
        """What the current event does to a partial match: which options take it, and which are left."""
        holds, live = self._holds, run[1]
        gap_ms = step.timestamp - run[5]
        takes = stay = 0
        for choice in place.choices:
            if not live & choice.bit or (choice.gap_ms is not None and gap_ms >= choice.gap_ms):
                continue
            self._context.entry = run[2]
            try:
                if choice.not_next and live & 1 and any(map(holds, choice.not_next)):
                    continue
                if choice.kind is not Kind.TAKE:
                    if choice.kind is Kind.NEXT_EVENT:
                        takes += 1
                        step.complete.append((HELD, 0, *run[2:5], step.timestamp, NO_STEP))
                    elif not any(map(holds, choice.not_before)):
                        stay |= choice.bit
                    continue
                fits = choice.condition is None or holds(choice.condition)
                ends = choice.until is not None and holds(choice.until)
                forbidden = choice.not_before and any(map(holds, choice.not_before))
                if fits and not ends and not (forbidden and choice.inner):
                    takes += step.take(choice, run[2], run[3], run[4])
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
        if place is self._positions[0]:  # it was no partial match before, and is none afterwards
            return
        if stay == live and not takes:
            step.runs.append(run)
            return
        step.changed = True
        if stay:
            step.runs.append((run[0], stay, *run[2:], NO_STEP))
            takes += 1
        if takes > 1:
            step.held += [run[2]] * (takes - 1)
        elif not takes:
            step.released.append(run[2])

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

    # -- matches ------------------------------------------------------------------------------------------------------

    def _settle(self, step: _Step, event_id: int, timestamp: int, found: list[Found]) -> None:
        """Hand out the matches that may be handed out. What they skip is gone; matches that wait become runs."""
        skip, runs, released = self._skip, step.runs, step.released
        if skip is None:
            for run in step.complete:
                found.append(Found(self._match(run[2], run[6], event_id), timestamp, False))
                released.append(run[2])
            return
        waiting = [run for run in runs if run[0] == HELD]
        if waiting:
            runs = [run for run in runs if run[0] != HELD]
        waiting += step.complete
        waiting.sort(key=_start)
        while waiting:
            first = waiting[0]
            if runs and min(map(_start, runs)) < first[3]:
                break
            del waiting[0]
            path = self._path(first[2], first[6] if len(first) > WIDTH else NO_STEP, event_id)
            found.append(Found(self._gathered(path, event_id), timestamp, False))
            released.append(first[2])
            kept_from = skip.kept_from([(self._names[taken], event) for taken, event in path])
            if kept_from is not None:
                released += [run[2] for run in runs + waiting if run[3] < kept_from]
                runs = [run for run in runs if run[3] >= kept_from]
                waiting = [run for run in waiting if run[3] >= kept_from]
        step.runs = [(HELD, 0, *run[2:]) for run in waiting] + runs

    def _path(self, entry: int, taken: int, event_id: int) -> list[tuple[int, int]]:
        """(step, event id) up to `entry`; and the current event, if the step `taken` has just taken it."""
        path = self._buffer.path(entry)
        if taken != NO_STEP:
            path.append((taken, event_id))
        return path

    def _match(self, entry: int, taken: int, event_id: int) -> Match:
        return self._gathered(self._path(entry, taken, event_id), event_id)

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

    def _store(self, head: Any, event_id: int, step: _Step, due: int) -> None:
        """Store what is left. `due`: when the time of those that were there before is over, or earlier."""
        if not step.runs:
            if head is not None:
                self._runs.clear()
                self._buffer.clear()
                if self._timed:
                    self._schedule(head[2], NEVER)
            return
        buffer, next_id = self._buffer, event_id
        stored: list[int] = [self.nfa.shape, 0, 0]
        for run in step.runs:
            if len(run) == WIDTH:
                stored += run
                continue
            position, live, entry, start_id, start_ms, before_ms, taken = run
            if self._timed and (own := self._due(Run(*run[:WIDTH]))) < due:
                due = own
            if taken != NO_STEP:
                buffer.add(next_id, taken, event_id, entry)
                entry = next_id
                next_id += 1
            stored += (position, live, entry, start_id, start_ms, before_ms)
        if next_id > event_id:
            buffer.add_event(event_id, self._event, next_id - event_id)
        if step.held or step.released:
            buffer.count(step.held, step.released)
        stored[1], stored[2] = next_id, due
        self._runs.update(tuple(stored))
        before = NEVER if head is None else head[2]
        if self._timed and due != before:
            self._schedule(before, due)

    def _other_shape(self) -> StateMigrationError:
        return StateMigrationError(
            "the state has partial matches of a pattern with other steps, which this one cannot go on with; "
            "give the operator a new uid to begin without them"
        )


_Fields = tuple[int, ...]
"""The fields of a partial match, as they are stored. One that has changed has a seventh: the step that has just taken
the current event, or NO_STEP."""


class _Step:
    """What the current event, or the end of some time, makes of the partial matches of a key.

    Each partial match, and each match that is complete, holds a reference to its entry: that of its last event; or, if
    it has just taken the current event, that of the event before.
    """

    __slots__ = ("changed", "complete", "held", "released", "runs", "timestamp")

    def begin(self, timestamp: int) -> None:
        self.timestamp = timestamp
        self.runs: list[_Fields] = []
        self.complete: list[_Fields] = []
        self.held: list[int] = []
        """Entries that have one reference more."""
        self.released: list[int] = []
        self.changed = False

    def take(self, choice: _Choice, entry: int, start_id: int, start_ms: int) -> int:
        """The option takes the current event. Return how many partial and complete matches come of it."""
        self.changed = True
        target = choice.place
        if not target.accepts:
            self.runs.append((target.index, target.all_live, entry, start_id, start_ms, self.timestamp, choice.step))
            return 1
        self.complete.append((HELD, 0, entry, start_id, start_ms, self.timestamp, choice.step))
        if not target.choices:
            return 1
        self.runs.append((target.index, target.all_live, entry, start_id, start_ms, self.timestamp, choice.step))
        return 2


class _Choice:
    """An option as the matcher reads it, field by field, for each event."""

    __slots__ = (
        "bit", "condition", "gap_ms", "greedy", "ignores", "ignores_all", "inner", "kind", "name", "not_before",
        "not_next", "place", "step", "strict", "until",
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
        self.greedy = option.greedy
        self.gap_ms = option.gap_ms
        self.strict = option.contiguity is Contiguity.STRICT
        self.place: _Place

    @property
    def is_plain(self) -> bool:
        """It asks for nothing but its condition."""
        return (
            self.kind is Kind.TAKE
            and self.until is None
            and self.gap_ms is None
            and not (self.not_before or self.not_next)
        )


class _Place:
    """A position as the matcher reads it."""

    __slots__ = ("accepts", "all_live", "choices", "index", "only", "timed")

    def __init__(self, position: Position, names: list[str]) -> None:
        self.index = position.index
        self.choices = [_Choice(option, 2 << index, names) for index, option in enumerate(position.options)]
        self.accepts = position.accepts
        self.all_live = position.all_live
        self.timed = any(choice.gap_ms is not None for choice in self.choices)
        plain = len(self.choices) == 1 and self.choices[0].is_plain
        self.only = self.choices[0] if plain else None
        """The one option, if it asks for nothing but its condition."""

    def waits(self, live: int) -> bool:
        """True if the match is complete when its time is over."""
        return any(choice.kind is Kind.END_OF_TIME and live & choice.bit for choice in self.choices)

    def longest_gap(self, live: int) -> int:
        """How long after its last event a partial match with these options can go on."""
        gaps = [choice.gap_ms for choice in self.choices if live & choice.bit]
        return NEVER if None in gaps else max(gap for gap in gaps if gap is not None)


def _places(nfa: Nfa, names: list[str]) -> list[_Place]:
    places = [_Place(position, names) for position in nfa.positions]
    for position, place in zip(nfa.positions, places, strict=True):
        for option, choice in zip(position.options, place.choices, strict=True):
            if option.kind is Kind.TAKE:
                choice.place = places[option.target]
    return places


def _start(run: _Fields) -> int:
    return run[3]
