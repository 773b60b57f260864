"""Matches patterns that come from a stream while the job runs.

Input 0 is the stream of patterns, which all partitions see; input 1 is the keyed stream of events. The patterns in
force are broadcast state. The partial matches of a key are apart for each version of a pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from headwater.common.errors import PatternError, StateError
from headwater.operators.cep.matcher import NEVER, Found, Matcher, MatcherStates
from headwater.operators.cep.nfa import compile_pattern
from headwater.operators.cep.operator import ENTRIES, EVENTS, RUNS, CepSettings, KeyedEventsOperator
from headwater.operators.cep.pattern_book import PatternBook, PatternInForce, Version
from headwater.operators.cep.steps import PatternSteps
from headwater.operators.results import Results
from headwater.state.descriptors import MapStateDescriptor, ValueStateDescriptor
from headwater.state.keyed_backend import NO_KEY

PATTERNS = MapStateDescriptor("cep-patterns")
"""{pattern id: (version, pattern as text or None, older versions that finish as ((version, text), ...))}"""
ACTIVE = "cep-active"
PATTERN_INPUT = 0


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
        self._matchers: dict[tuple[Version, str], Matcher] = {}

    def open(self) -> None:
        backend, operator_backend = self._backend, self.context.operator_backend
        if operator_backend is None:
            raise StateError(f"operator '{self.context.name}' has broadcast state, but runs where none is kept")
        self._patterns = operator_backend.get_broadcast_state(PATTERNS)
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
        rejected: list[Any] = []
        stamps: list[int | None] = []
        for index, value in enumerate(values):
            try:
                self._apply(self._read(value))
            except PatternError as error:
                rejected.append((value, str(error)))
                stamps.append(None if timestamps is None else timestamps[index])
        self._derive()
        # All partitions see the same record, and one says so.
        if rejected and self._rejected_tag is not None and self.context.partition == 0:
            self.output.emit_side(self._rejected_tag, rejected, None if timestamps is None else stamps)

    def read_ahead(self, values: list[Any]) -> None:
        """Which input the records are of is not known yet."""

    def _apply(self, update: PatternUpdate) -> None:
        if update.text is not None:
            compile_pattern(self._compile_text(update.text))
        known: Any = self._patterns.get(update.pattern_id)
        if known is not None and update.version <= known[0]:
            raise PatternError(
                f"pattern '{update.pattern_id}' has version {known[0]}, so version {update.version} comes too late; "
                "a change needs a greater version"
            )
        older: tuple[Any, ...] = ()
        if known is not None and self._finish_replaced:
            older = (*known[2], (known[0], known[1])) if known[1] is not None else known[2]
        # What was removed stays as a version without a pattern: an old record must not bring it back.
        self._patterns.put(update.pattern_id, (update.version, update.text, older))

    def _derive(self) -> None:
        """Bring the compiled patterns in line with the state."""
        in_force: list[PatternInForce] = []
        entries: list[tuple[Any, Any]] = sorted(self._patterns.items())
        matchers: dict[tuple[Version, str], Matcher] = {}
        for pattern_id, (version, text, older) in entries:
            for each_version, each_text in (*older, (version, text)):
                if each_text is None:
                    continue
                known = ((pattern_id, each_version), each_text)
                matcher = self._matchers.get(known)
                matchers[known] = self._matcher(*known) if matcher is None else matcher
                in_force.append(PatternInForce(known[0], matchers[known], each_version != version))
        self._matchers = matchers
        self._book = PatternBook(in_force)

    def _matcher(self, version: Version, text: str) -> Matcher:
        context = self.context

        def schedule(before: int, after: int) -> None:
            self._schedule(before, after, version)

        nfa = compile_pattern(self._compile_text(text))
        return Matcher(nfa, self._states, schedule, lambda: context.processing_time_ms)

    # -- events -------------------------------------------------------------------------------------------------------

    def _handle(self, event: Any, timestamp: int, results: Results) -> None:
        active: Any = self._active.value() or ()
        begins = self._book.may_begin_with(event)
        if not active and not begins:
            return
        backend = self._backend
        by_version = self._book.by_version
        tried = {each.number: each for each in begins}
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
            found = pattern.matcher.process(event, timestamp, begins=not pattern.finishing)
            if pattern.matcher.has_runs():
                still += pattern.version
            if found:
                self._report_version(pattern.version, found, results)
        if tuple(still) != active:
            self._active.update(tuple(still) or None)

    def _time_is_over(self, namespace: Any, timestamp: int, results: Results) -> None:
        pattern = self._book.by_version.get(namespace)
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


def _versioned(match: dict[str, list[Any]], version: Version) -> VersionedMatch:
    made = VersionedMatch(match)
    made.pattern_id, made.version = version
    return made
