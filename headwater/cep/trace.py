"""Why did it match, or not? A pattern run over a few events of one key, event by event, with each partial match."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.cep.pattern import Pattern
from headwater.common.errors import PatternError, TypeMismatchError, short_repr
from headwater.operators.cep.matcher import HELD, ConditionFailed, Match, Matcher, MatcherStates, Run
from headwater.operators.cep.nfa import Kind, Nfa, Option, compile_pattern
from headwater.operators.cep.steps import Contiguity
from headwater.state.descriptors import MapStateDescriptor, ValueStateDescriptor
from headwater.state.heap.backend import HeapKeyedStateBackend

Taken = tuple[tuple[str, int], ...]
"""(step, index of the event) of a partial match, in order."""

BEGINS, ADVANCES, LIVES, WAITS = "begins", "advances", "lives", "waits"
DIES, MATCHES, SKIPPED, OUT_OF_TIME, NOTHING = "dies", "matches", "skipped", "out of time", "nothing"
ENDS = (DIES, MATCHES, SKIPPED, OUT_OF_TIME)
END_OF_ALL_TIME = 1 << 61


@dataclass(frozen=True)
class TraceRow:
    """What an event, or the end of some time (`event` is None), did to one partial match."""

    timestamp: int
    event: int | None
    before: Taken
    """The partial match before; empty if it begins with this event."""
    taken: Taken
    """The partial match after; or as it was when it ended."""
    outcome: str
    why: str = ""


@dataclass(frozen=True)
class PatternTrace:
    """What `CEP.trace` saw. Its text is a table; `to_svg()` draws it."""

    pattern: Pattern
    events: tuple[Any, ...]
    timestamps: tuple[int, ...]
    rows: tuple[TraceRow, ...]
    matches: tuple[Match, ...]
    timed_out: tuple[Match, ...]

    def __str__(self) -> str:
        heading = ("time", "event", "partial match", "what", "why")
        lines: list[tuple[str, ...]] = [heading]
        shown: int | None = -1
        for row in self.rows:
            event = "time passes" if row.event is None else f"{row.event}: {short_repr(self.events[row.event], 40)}"
            again = row.event is not None and row.event == shown
            shown = row.event
            path = ", ".join(f"{step} {index}" for step, index in row.taken)
            lines.append(("" if again else str(row.timestamp), "" if again else event, path, row.outcome, row.why))
        widths = [max(len(line[column]) for line in lines) for column in range(len(heading))]
        lines.insert(1, tuple("-" * width for width in widths))
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )

    def to_svg(self) -> str:
        """The trace as a picture: a column for each event, a line for each partial match."""
        from headwater.cep.trace_picture import trace_picture

        return trace_picture(self)


def trace(pattern: Pattern, events: Iterable[Any], timestamps: Any = None) -> PatternTrace:
    """See `CEP.trace`."""
    if not isinstance(pattern, Pattern):
        raise TypeMismatchError(f"CEP.trace() expects a Pattern, found {short_repr(pattern)}")
    values = list(events)
    stamps = _timestamps(values, timestamps)
    order = sorted(range(len(values)), key=stamps.__getitem__)
    values, stamps = [values[at] for at in order], [stamps[at] for at in order]
    tracer = _Tracer(pattern)
    for index, (value, timestamp) in enumerate(zip(values, stamps, strict=True)):
        tracer.event(index, value, timestamp)
    tracer.time_passes(END_OF_ALL_TIME)
    return PatternTrace(
        pattern, tuple(values), tuple(stamps), tuple(tracer.rows), tuple(tracer.matches), tuple(tracer.timed_out)
    )


def _timestamps(values: list[Any], given: Callable[[Any], int] | Iterable[int] | None) -> list[int]:
    if given is None:
        return list(range(len(values)))
    stamps = [given(value) for value in values] if callable(given) else list(given)
    wrong = [stamp for stamp in stamps if isinstance(stamp, bool) or not isinstance(stamp, int)]
    if wrong or len(stamps) != len(values):
        found = f"{short_repr(wrong[0])} among them" if wrong else f"{len(stamps)} of them"
        raise TypeMismatchError(
            f"CEP.trace() expects timestamps in ms, one for each of {len(values)} events, found {found}"
        )
    return stamps


class _RecordingMatcher(Matcher):
    """Also tells the events of what it finds by their ids."""

    paths: list[list[tuple[int, int]]]

    def _gathered(self, path: list[tuple[int, int]], current: int) -> Match:
        self.paths.append(path)
        return super()._gathered(path, current)

    def stored(self) -> list[tuple[Run, list[tuple[int, int]]]]:
        """The partial matches with their (step, event id)s."""
        return [(run, self._buffer.path(run.entry)) for run in self.runs()]

    def next_id(self) -> int:
        head: Any = self._runs.value()
        return 1 if head is None else int(head[1])

    def step_name(self, step: int) -> str:
        return self._names[step]

    def look_at(self, event: Any, timestamp: int) -> None:
        """Make `event` the current one for `why_not`, before it is processed."""
        self._event, self.timestamp = event, timestamp
        self._known.clear()

    def why_not(self, run: Run, timestamp: int) -> str:
        """Why no option of a partial match will take the current event, if none does."""
        self._context.entry = run.entry
        reasons = []
        for number, option in enumerate(self.nfa.positions[run.position].options):
            if run.live < 0 or run.live & (2 << number):
                reasons.append(_why_not(self.nfa, option, self._holds, run, timestamp - run.before_ms))
        return "; ".join(dict.fromkeys(reasons))


def _why_not(nfa: Nfa, option: Option, holds: Callable[[int], Any], run: Run, gap_ms: int) -> str:
    def first(conditions: Sequence[int]) -> str | None:
        return next((str(nfa.conditions[each]) for each in conditions if holds(each)), None)

    name = "the end of the time" if option.step is None else f"'{option.step.name}'"
    if option.gap_ms is not None and gap_ms >= option.gap_ms:
        return f"too late for {name}: {gap_ms} ms after the event before"
    if run.live & 1 and (fits := first(option.not_next)):
        return f"fits what must not come next ({fits})"
    if option.kind is Kind.TAKE and option.until is not None and holds(option.until):
        return f"ends the loop {name} ({nfa.conditions[option.until]})"
    if fits := first(option.not_before):
        return f"fits what must not come ({fits})"
    if option.condition is None or holds(option.condition):
        return f"waits for {name}" if option.kind is Kind.END_OF_TIME else f"could be {name}"
    strict = ", which must come next" if option.contiguity is Contiguity.STRICT and run.position else ""
    return f"not {name} ({nfa.conditions[option.condition]}){strict}"


class _Tracer:
    def __init__(self, pattern: Pattern) -> None:
        backend = HeapKeyedStateBackend("trace", 1, range(1))
        backend.current_key = 0
        states = MatcherStates(
            backend.get_state(ValueStateDescriptor("runs")),
            backend.get_state(MapStateDescriptor("entries")),
            backend.get_state(MapStateDescriptor("events")),
        )
        self._matcher = _RecordingMatcher(compile_pattern(pattern.steps()), states)
        self._index_of: dict[int, int] = {}  # {event id: index}
        self._reasons: dict[Run, str] = {}
        self.rows: list[TraceRow] = []
        self.matches: list[Match] = []
        self.timed_out: list[Match] = []

    def event(self, index: int, value: Any, timestamp: int) -> None:
        self.time_passes(timestamp)
        before = self._partial_matches()
        if not before:
            self._index_of.clear()
        self._index_of[self._matcher.next_id()] = index
        try:
            ended = self._found(lambda: self._matcher.process(value, timestamp), (value, timestamp))
        except ConditionFailed as error:
            raise PatternError(
                f"a condition of step '{error.step}' raised {error.__cause__!r} for event {index}: {short_repr(value)}"
            ) from error.__cause__
        self._compare(index, timestamp, before, self._partial_matches(), ended)

    def time_passes(self, timestamp: int) -> None:
        """Each moment at which some time is over is a row of its own."""
        while (due := self._due()) <= timestamp:
            before = self._partial_matches()
            ended = self._found(lambda due=due: self._matcher.expire(due))  # type: ignore[misc]
            self._compare(None, due, before, self._partial_matches(), ended)

    def _due(self) -> int:
        head: Any = self._matcher._runs.value()
        return 1 << 62 if head is None else int(head[2])

    def _found(self, call: Callable[[], Any], event: tuple[Any, int] | None = None) -> list[tuple[Taken, bool]]:
        """Call the matcher. With an event, ask first why each partial match would not take it: later some are gone."""
        self._reasons = {}
        if event is not None:
            self._matcher.look_at(*event)
            for run in (Run(0, -2, 0, 0, event[1], event[1]), *self._matcher.runs()):
                if run.position != HELD:
                    with contextlib.suppress(Exception):  # the matcher itself will tell which condition raised
                        self._reasons[run] = self._matcher.why_not(run, event[1])
        self._matcher.paths = []
        found = call()
        for each in found:
            (self.timed_out if each.timed_out else self.matches).append(each.match)
        paths = map(self._named, self._matcher.paths)
        return [(path, each.timed_out) for path, each in zip(paths, found, strict=True)]

    def _named(self, path: Sequence[tuple[int, int]]) -> Taken:
        return tuple((self._matcher.step_name(step), self._index_of[event_id]) for step, event_id in path)

    def _partial_matches(self) -> list[tuple[Taken, Run]]:
        return [(self._named(path), run) for run, path in self._matcher.stored()]

    def _compare(
        self,
        index: int | None,
        timestamp: int,
        before: list[tuple[Taken, Run]],
        after: list[tuple[Taken, Run]],
        ended: list[tuple[Taken, bool]],
    ) -> None:
        """Add the rows for what became of `before`, and what is new in `after`."""
        rows = len(self.rows)
        known = {(taken, run.position) for taken, run in before}
        left = {(taken, run.position) for taken, run in after}
        matched = [taken for taken, timed_out in ended if not timed_out]
        out_of_time = [taken for taken, timed_out in ended if timed_out]

        def row(before: Taken, taken: Taken, outcome: str, why: str = "") -> None:
            self.rows.append(TraceRow(timestamp, index, before, taken, outcome, why))

        for taken, run in before:
            children = [each for each, _ in after if each[:-1] == taken and each[-1][1] == index]
            done = [each for each in matched if each == taken or (each[:-1] == taken and each[-1][1] == index)]
            for child in dict.fromkeys(children):
                held = any(each == child and new.position == HELD for each, new in after)
                row(taken, child, WAITS if held else ADVANCES, "one that began earlier may still match" if held else "")
            for match in done:
                row(taken, match, MATCHES)
            if (taken, run.position) in left:
                waits = run.position == HELD
                if index is not None:
                    why = "" if waits or children or done else self._reasons.get(run, "")
                    row(taken, taken, WAITS if waits else LIVES, why)
            elif taken in out_of_time:
                row(taken, taken, OUT_OF_TIME)
            elif not children and not done:
                skipped = bool(matched)
                row(taken, taken, SKIPPED if skipped else DIES, "" if skipped else self._reasons.get(run, ""))
        new = {each for each in (*(taken for taken, _ in after), *matched) if len(each) == 1 and each[0][1] == index}
        for taken in sorted(new):
            if taken in matched:
                row((), taken, MATCHES)
            if any((taken, run.position) in left and (taken, run.position) not in known for _, run in after):
                row((), taken, BEGINS)
        if index is not None and len(self.rows) == rows:
            row((), (), NOTHING, self._reasons.get(Run(0, -2, 0, 0, timestamp, timestamp), ""))
