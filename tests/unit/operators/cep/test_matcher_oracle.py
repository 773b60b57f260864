"""The matcher finds what brute force finds: all contiguities, quantifiers, negations, groups, times and skips."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from headwater.operators.cep.matcher import Found, Matcher, MatcherStates
from headwater.operators.cep.nfa import compile_pattern
from headwater.operators.cep.steps import PatternSteps
from headwater.state.descriptors import MapStateDescriptor, ValueStateDescriptor
from headwater.state.heap.backend import HeapKeyedStateBackend
from tests.unit.operators.cep.generated import patterns, streams
from tests.unit.operators.cep.oracle import FOREVER, Event, Oracle

CASES = int(os.environ.get("CEP_CASES", "600"))


def matcher_of(pattern: PatternSteps) -> tuple[Matcher, HeapKeyedStateBackend]:
    backend = HeapKeyedStateBackend("cep", 1, range(1))
    backend.current_key = "key"
    states = MatcherStates(
        backend.get_state(ValueStateDescriptor("runs")),
        backend.get_state(MapStateDescriptor("entries")),
        backend.get_state(MapStateDescriptor("events")),
    )
    return Matcher(compile_pattern(pattern), states), backend


class Numbered(Event):
    """An event that knows its place."""

    index: int


def found_by_matcher(pattern: PatternSteps, events: list[Event]) -> tuple[Counter[Any], Counter[Any]]:
    matcher, backend = matcher_of(pattern)
    numbered = []
    for index, event in enumerate(events):
        each = Numbered(*event)
        each.index = index
        numbered.append(each)
    found: list[Found] = []
    for event in numbered:
        found += matcher.process(event, event.timestamp)
        check_buffer(matcher)
    found += matcher.expire(FOREVER - 1)
    if pattern.within_ms is not None:
        assert backend.number_of_entries() == 0, "something was left when all time was over"
    matches = Counter(as_key(each) for each in found if not each.timed_out)
    return matches, Counter(as_key(each) for each in found if each.timed_out)


def check_buffer(matcher: Matcher) -> None:
    """The buffer has what partial matches refer to, each counted rightly, and nothing else."""
    entries: dict[int, Any] = dict(matcher._buffer._entries.items())
    sharing = {-key: entries.pop(key) for key in list(entries) if key < 0}
    references: Counter[int] = Counter()
    reached: set[int] = set()
    for run in matcher.runs():
        references[run.entry] += 1
        entry = run.entry
        while entry and entry not in reached:
            reached.add(entry)
            entry = entries[entry][2]
            references[entry] += 1
    del references[0]
    assert {entry: value[3] for entry, value in entries.items()} == references
    uses = Counter(value[1] for value in entries.values())
    assert set(matcher._buffer._events.keys()) == set(uses)
    assert {event: count for event, count in uses.items() if count > 1} == sharing


def as_key(found: Found) -> Any:
    return found.timestamp, tuple(sorted((event.index, name) for name, part in found.match.items() for event in part))


def found_by_oracle(pattern: PatternSteps, events: list[Event]) -> tuple[Counter[Any], Counter[Any]]:
    matches, timed_out = Oracle(pattern, events).results()
    return tuple(  # type: ignore[return-value]
        Counter(
            (at[0], tuple(sorted((index, name) for name, index in taken))) for at, taken in results if at[0] < FOREVER
        )
        for results in (matches, timed_out)
    )


@pytest.mark.timeout(3600)
@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(patterns(), streams())
def test_the_matcher_finds_what_brute_force_finds(pattern: PatternSteps, events: list[Event]) -> None:
    assert found_by_matcher(pattern, events) == found_by_oracle(pattern, events)
