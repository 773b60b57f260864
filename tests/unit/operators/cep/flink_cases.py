"""Patterns and events as plain values, for Flink's matcher and back (scripts/record_flink_patterns.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headwater.operators.cep.conditions import Condition, Test
from headwater.operators.cep.skip import AfterMatchSkipStrategy, _Kind
from headwater.operators.cep.steps import Contiguity, Group, Negation, Part, PatternSteps, Step
from tests.unit.operators.cep.generated import Letter, LetterAfter
from tests.unit.operators.cep.oracle import Event

FILE = Path(__file__).with_name("flink_matches.json")


def case_of(pattern: PatternSteps, events: list[Event]) -> dict[str, Any]:
    return {
        "parts": [_part(part) for part in pattern.parts],
        "skip": [pattern.skip.kind.value, pattern.skip.target],
        "within": pattern.within_ms,
        "events": [list(event) for event in events],
    }


def pattern_of(case: dict[str, Any]) -> PatternSteps:
    kind, target = case["skip"]
    return PatternSteps(
        tuple(map(_read_part, case["parts"])), AfterMatchSkipStrategy(_Kind(kind), target), case["within"]
    )


def events_of(case: dict[str, Any]) -> list[Event]:
    return [Event(*event) for event in case["events"]]


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Group):
        data: dict[str, Any] = {"steps": [_part(inner) for inner in part.steps]}
    else:
        data = {"name": part.name, "condition": _condition(part.condition)}
        if part.negation is not None:
            return {**data, "negation": part.negation.value}
        data |= {"greedy": part.greedy, "until": None if part.until is None else _condition(part.until)}
    return data | {
        "contiguity": part.contiguity.value,
        "least": part.least,
        "most": part.most,
        "optional": part.optional,
        "inner": part.inner.value,
        "gap": part.gap_ms,
        "inner_gap": part.inner_gap_ms,
    }


def _condition(condition: Condition) -> list[Any]:
    assert isinstance(condition, Test) and isinstance(condition.function, Letter)
    return [condition.function.letter, condition.needs_context]


def _read_part(data: dict[str, Any]) -> Part:
    if "negation" in data:
        return Step(data["name"], condition=_read(data["condition"]), negation=Negation(data["negation"]))
    common = {
        "contiguity": Contiguity(data["contiguity"]),
        "least": data["least"],
        "most": data["most"],
        "optional": data["optional"],
        "inner": Contiguity(data["inner"]),
        "gap_ms": data["gap"],
        "inner_gap_ms": data["inner_gap"],
    }
    if "steps" in data:
        return Group(tuple(map(_read_part, data["steps"])), **common)
    until = None if data["until"] is None else _read(data["until"])
    return Step(data["name"], condition=_read(data["condition"]), greedy=data["greedy"], until=until, **common)


def _read(condition: list[Any]) -> Test:
    letter, iterative = condition
    return Test(LetterAfter(letter), True) if iterative else Test(Letter(letter))
