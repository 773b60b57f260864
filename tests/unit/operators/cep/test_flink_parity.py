"""The matcher finds what Flink's own matcher found, but for known differences (scripts/record_flink_patterns.py)."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import Any

from headwater.operators.cep.steps import Contiguity, Group, PatternSteps, all_steps
from tests.unit.operators.cep.flink_cases import FILE, events_of, pattern_of
from tests.unit.operators.cep.test_matcher_oracle import found_by_matcher


def known_difference(pattern: PatternSteps) -> str | None:
    """What docs/cep.md says is different."""
    steps = list(all_steps(pattern.parts))
    if any(step.inner_gap_ms is not None or (step.gap_ms is not None and step.loops) for step in steps):
        return "times between the events of a loop"
    for group in pattern.parts:
        if isinstance(group, Group) and (group.loops or any(step.loops for step in all_steps(group.steps))):
            return "loops in groups"
    for step, following in pairwise(steps):
        limited = step.loops and step.most is not None and (step.greedy or step.inner is Contiguity.ANY)
        if following.negation and limited:
            return "a negative step after a loop with a limit"
        if step.negation and following.loops:
            return "an event that fits a negative step and the loop after it"
    required = [step for step in steps if not step.optional]
    if required and required[-1].negation is not None and required[-1] is not steps[-1]:
        return "a negative step before the optional end"
    return None


def as_counter(found: list[Any]) -> Counter[Any]:
    return Counter(tuple(sorted((index, name) for index, name in match)) for _, match in found)


def test_the_matcher_finds_what_flink_found() -> None:
    compared = Counter[str]()
    for case in json.loads(FILE.read_text(encoding="utf-8")):
        pattern, events, flink = pattern_of(case), events_of(case), case["flink"]
        if "error" in flink or known_difference(pattern):
            compared["not compared"] += 1
            continue
        matches, timed_out = found_by_matcher(pattern, events)
        ours = Counter[Any]()
        for (_, taken), count in matches.items():
            ours[taken] += count
        assert ours == as_counter(flink["matches"]), (pattern, events)
        # Flink tells a time-out once per state of its automaton, and also of what has just matched.
        known = {(at, tuple(sorted((index, name) for index, name in match))) for at, match in flink["timeouts"]}
        assert set(timed_out) <= known or pattern.skip.skips or any(step.gap_ms for step in all_steps(pattern.parts))
        compared["compared"] += 1
        compared["with matches"] += bool(ours)
    assert compared["with matches"] > 80, compared
