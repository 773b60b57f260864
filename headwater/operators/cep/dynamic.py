"""Matches patterns that come from a stream while the job runs.

Input 0 is the stream of patterns, which all partitions see; input 1 is the keyed stream of events. The patterns in
force are broadcast state, and so are updates that event time has not reached: they wait as events do, so that it does
not matter which of the two is read first. The partial matches of a key are apart for each version of a pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeGuard

from headwater.common.errors import PatternError, StateError
from headwater.operators.cep.conditions import Condition
from headwater.operators.cep.matcher import NEVER, Found, Matcher, MatcherStates
from headwater.operators.cep.nfa import compile_pattern
from headwater.operators.cep.operator import ENTRIES, EVENTS, RUNS, CepSettings, KeyedEventsOperator
from headwater.operators.cep.pattern_book import PatternBook, PatternInForce, Version, opening_of, without_opening
from headwater.operators.cep.steps import PatternSteps
from headwater.operators.results import Results
from headwater.state.descriptors import MapStateDescriptor, ValueStateDescriptor
from headwater.state.keyed_backend import NO_KEY

PATTERNS = MapStateDescriptor("cep-patterns")
"""{pattern id: (version, pattern as text or None, older versions that finish as ((version, text), ...))}"""
WAITING_UPDATES = MapStateDescriptor("cep-waiting-patterns")
"""{(timestamp, pattern id, version, pattern as text or None): the record that said so}"""
ACTIVE = "cep-active"
PATTERN_INPUT = 0

_Rejected = tuple[Any, int | None, PatternError]
"""A record of the pattern stream, its timestamp, and what is wrong with it."""


class PatternUpdate(NamedTuple):
    """A record of the pattern stream, read: a new version of a pattern, or (None) its end."""

    pattern_id: str
    version: int
    text: str | None


class VersionedMatch(dict[str, list[Any]]):
    """A match of a pattern that came from a stream: {step: its events}."""

    pattern_id: str
    version: int


class DynamicCepOperator(KeyedEventsOperator):
    """Runs a `PatternProcessFunction` on the matches of all patterns in force."""

    inputs_of_elements = (1, PATTERN_INPUT)

    def __init__(
        self,
        key_selector: Any,
        read: Callable[[Any], PatternUpdate],
        compile_text: Callable[[str], PatternSteps],
        function: Any,
        settings: CepSettings,
        rejected_tag: str | None,
        finish_replaced: bool,
    ) -> None:
        """`read` and `compile_text` raise `PatternError` for rubbish, which goes to `rejected_tag` with the reason."""
        super().__init__(key_selector, function, settings)
        self.keys_of = (None, self.key_of)
        self._read = read
        self._compile_text = compile_text
        self._rejected_tag = rejected_tag
        self._finish_replaced = finish_replaced
        self._compiled: dict[str, tuple[Matcher, Condition]] = {}
        """{pattern as text: (matcher, its first condition)}"""
        self._matchers: dict[PatternSteps, Matcher] = {}
        """{pattern without its first condition: matcher}"""
        self._book: PatternBook | None = None
        self._ended: set[Version] = set()
        self._next_update = NEVER

    def open(self) -> None:
        backend, operator_backend = self._backend, self.context.operator_backend
        if operator_backend is None:
            raise StateError(f"operator '{self.context.name}' has broadcast state, but runs where none is kept")
        self._patterns = operator_backend.get_broadcast_state(PATTERNS)
        self._updates = operator_backend.get_broadcast_state(WAITING_UPDATES)
        self._active: Any = backend.get_state(ValueStateDescriptor(ACTIVE))
        runs: Any = backend.get_namespaced_state(ValueStateDescriptor(RUNS))
        entries: Any = backend.get_namespaced_state(MapStateDescriptor(ENTRIES))
        events: Any = backend.get_namespaced_state(MapStateDescriptor(EVENTS))
        self._states = MatcherStates(runs, entries, events)
        super().open()
        self._derive()

    # -- patterns -----------------------------------------------------------------------------------------------------

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        if input_index != PATTERN_INPUT:
            super().process_batch(values, timestamps)
            return
        self._follow_rollbacks()
        self._backend.current_key = NO_KEY
        rejected: list[_Rejected] = []
        for value, timestamp in zip(values, timestamps or [None] * len(values), strict=True):
            try:
                update = self._read(value)
                if update.text is not None:
                    compile_pattern(self._compile_text(update.text))
                if self._is_early(timestamp):
                    self._updates.put((timestamp, *update), value)
                    self._next_update = min(self._next_update, timestamp)
                else:
                    self._apply(update)
            except PatternError as error:
                rejected.append((value, timestamp, error))
        self._forget_ended()
        self._reject(rejected)

    def _is_early(self, timestamp: int | None) -> TypeGuard[int]:
        """True for an update that event time has not reached. One without a timestamp holds at once."""
        return self._settings.event_time and timestamp is not None and timestamp > self.context.watermark

    def _advance(self, watermark: int) -> None:
        """An update comes before the events of its timestamp, and after all earlier ones."""
        if self._next_update <= watermark:
            waiting: Iterable[tuple[Any, Any]] = self._updates.items()
            due = sorted((each for each in waiting if each[0][0] <= watermark), key=_in_order)
            for timestamp, updates in groupby(due, lambda each: each[0][0]):
                if timestamp - 1 > self.context.watermark:
                    super()._advance(timestamp - 1)
                self._apply_waiting(updates)
            self._next_update = self._first_update()
        super()._advance(watermark)

    def _apply_waiting(self, updates: Iterable[tuple[Any, Any]]) -> None:
        self._backend.current_key = NO_KEY
        rejected: list[_Rejected] = []
        for key, record in updates:
            self._updates.remove(key)
            try:
                self._apply(PatternUpdate(*key[1:]))
            except PatternError as error:
                rejected.append((record, key[0], error))
        self._forget_ended()
        self._reject(rejected)

    def _first_update(self) -> int:
        return min((key[0] for key in self._updates), default=NEVER)

    def _reject(self, rejected: list[_Rejected]) -> None:
        # All partitions see the same record, and one says so.
        if rejected and self._rejected_tag is not None and self.context.partition == 0:
            stamps = [timestamp for _, timestamp, _ in rejected]
            said = [(record, str(error)) for record, _, error in rejected]
            self.output.emit_side(self._rejected_tag, said, None if all(each is None for each in stamps) else stamps)

    def read_ahead(self, values: list[Any]) -> None:
        """Which input the records are of is not known yet."""

    def _apply(self, update: PatternUpdate) -> None:
        known: Any = self._patterns.get(update.pattern_id)
        if known is not None and update.version <= known[0]:
            raise PatternError(
                f"pattern '{update.pattern_id}' has version {known[0]}, so version {update.version} comes too late; "
                "a change needs a greater version"
            )
        older: tuple[Any, ...] = ()
        if known is not None and self._finish_replaced:
            older = (*known[2], (known[0], known[1])) if known[1] is not None else known[2]
        elif known is not None and known[1] is not None and self._compile_text(known[1]).within_ms is None:
            self._ended.add((update.pattern_id, known[0]))
        # What was removed stays as a version without a pattern: an old record must not bring it back.
        self._patterns.put(update.pattern_id, (update.version, update.text, older))
        self._book = None

    def _forget_ended(self) -> None:
        """Drop the partial matches of ended versions without `within` at once: the keys may never be met again, and no
        timer would drop them."""
        if not self._ended:
            return
        for key in list(self._backend.keys(ACTIVE)):
            self._backend.current_key = key
            active: Any = self._active.value() or ()
            pairs = [active[at : at + 2] for at in range(0, len(active), 2)]
            kept = [pair for pair in pairs if pair not in self._ended]
            if len(kept) < len(pairs):
                for version in self._ended.intersection(pairs):
                    self._forget(version)
                self._active.update(tuple(part for pair in kept for part in pair) or None)
        self._ended.clear()

    def _derive(self) -> None:
        self._ended.clear()
        self._book = None
        self._next_update = self._first_update()

    def _patterns_in_force(self) -> PatternBook:
        """The compiled patterns. They are made when an event asks for them: updates often come many at a time."""
        if self._book is not None:
            return self._book
        in_force: list[PatternInForce] = []
        before, self._compiled = self._compiled, {}
        entries: list[tuple[Any, Any]] = sorted(self._patterns.items())
        for pattern_id, (version, text, older) in entries:
            for each_version, each_text in (*older, (version, text)):
                if each_text is None:
                    continue
                known = self._compiled.get(each_text) or before.get(each_text) or self._compile(each_text)
                self._compiled[each_text] = known
                matcher, opening = known
                in_force.append(PatternInForce((pattern_id, each_version), matcher, opening, each_version != version))
        used = {matcher for matcher, _ in self._compiled.values()}
        self._matchers = {steps: matcher for steps, matcher in self._matchers.items() if matcher in used}
        self._book = PatternBook(in_force)
        return self._book

    def _compile(self, text: str) -> tuple[Matcher, Condition]:
        """The matcher, which may be that of other patterns too, and what an event must fit to begin a match."""
        backend, context = self._backend, self.context

        def schedule(before: int, after: int) -> None:
            self._schedule(before, after, backend.current_namespace)

        steps = self._compile_text(text)
        shared = without_opening(steps)
        matcher = self._matchers.get(shared)
        if matcher is None:
            nfa = compile_pattern(shared)
            matcher = Matcher(nfa, self._states, schedule, lambda: context.processing_time_ms)
            self._matchers[shared] = matcher
        return matcher, opening_of(compile_pattern(steps))

    # -- events -------------------------------------------------------------------------------------------------------

    def _handle(self, event: Any, timestamp: int, results: Results) -> None:
        active: Any = self._active.value() or ()
        book = self._patterns_in_force()
        begun = book.begun_by(event)
        if not active and not begun:
            return
        backend = self._backend
        by_version = book.by_version
        tried = {each.number: each for each in begun}
        begins = frozenset(tried)
        still: list[Any] = []
        for at in range(0, len(active), 2):
            known = by_version.get(active[at : at + 2])
            if known is None:
                self._forget(active[at : at + 2])
            else:
                tried[known.number] = known
        for number in sorted(tried):
            pattern = tried[number]
            backend.current_namespace = pattern.version
            found = pattern.matcher.process(event, timestamp, begins=number in begins)
            if pattern.matcher.has_runs():
                still += pattern.version
            if found:
                self._report_version(pattern.version, found, results)
        if tuple(still) != active:
            self._active.update(tuple(still) or None)

    def _time_is_over(self, namespace: Any, timestamp: int, results: Results) -> None:
        pattern = self._patterns_in_force().by_version.get(namespace)
        self._backend.current_namespace = namespace
        if pattern is None:
            self._forget(namespace)
        else:
            if found := pattern.matcher.expire(timestamp):
                self._report_version(namespace, found, results)
            if pattern.matcher.has_runs():
                return
        active = self._active.value() or ()
        pairs = [active[at : at + 2] for at in range(0, len(active), 2)]
        self._active.update(tuple(part for pair in pairs if pair != namespace for part in pair) or None)

    def _forget(self, version: Version) -> None:
        """Drop the partial matches, of the current key, of a version that is no longer in force."""
        self._backend.current_namespace = version
        head: Any = self._states.runs.value()
        if head is not None and head[2] != NEVER:
            self._timers.delete(head[2], self._backend.current_key, version)
        self._states.runs.clear()
        self._states.entries.clear()
        self._states.events.clear()

    def _report_version(self, version: Version, found: Sequence[Found], results: Results) -> None:
        self._report([each._replace(match=_versioned(each.match, version)) for each in found], results)


def _in_order(waiting: tuple[Any, Any]) -> Any:
    """Updates may arrive in any order. Those of one timestamp are applied in the order of their versions."""
    timestamp, pattern_id, version, text = waiting[0]
    return timestamp, pattern_id, version, text or ""


def _versioned(match: dict[str, list[Any]], version: Version) -> VersionedMatch:
    made = VersionedMatch(match)
    made.pattern_id, made.version = version
    return made
