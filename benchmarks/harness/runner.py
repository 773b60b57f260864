"""Runs the cases one program after another, with nothing beside them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from benchmarks.case import Case, Contender
from benchmarks.harness import machine
from benchmarks.harness.process import Outcome, Program, run


@dataclass(frozen=True)
class Measurement:
    """What came of one contender: the facts of its median run, and the metric of each run."""

    contender: str
    facts: dict[str, Any]
    all_runs: list[float]
    error: str | None
    loads: list[float] = field(default_factory=list)
    """The machine's load as each run began."""

    @property
    def measured(self) -> bool:
        return bool(self.facts)


def run_case(case: Case, *, quick: bool, with_peers: bool) -> list[Measurement]:
    """Run all contenders of `case` in order and say on standard output what each gave."""
    print(f"\n{case.title}", flush=True)
    contenders = [contender for contender in case.contenders if with_peers or not contender.peer]
    measurements = []
    for contender, (outcomes, loads) in zip(contenders, _run_in_turn(contenders, quick), strict=True):
        measurement = dataclasses.replace(_measured(case, contender, outcomes), loads=loads)
        shown = f"{measurement.facts[case.metric]:,.1f} {case.unit}" if measurement.measured else "no result"
        note = f"   [{measurement.error}]" if measurement.error else ""
        print(f"  {contender.name:<36} {shown}{note}", flush=True)
        measurements.append(measurement)
    return measurements


def _run_in_turn(contenders: list[Contender], quick: bool) -> list[tuple[list[Outcome], list[float]]]:
    """The outcomes of each contender, and the loads before. First runs come first, then second ones: what a shared
    machine does to one of them for minutes, it does to the others, too."""
    turns: list[tuple[list[Outcome], list[float]]] = [([], []) for _ in contenders]
    for turn in range(1 if quick else max((contender.repeats for contender in contenders), default=0)):
        for contender, (mine, loads) in zip(contenders, turns, strict=True):
            if turn >= contender.repeats or any(not outcome.measured for outcome in mine):
                continue
            program = _sized(contender, quick)
            program.environment.ensure()
            loads.append(machine.load())
            mine.append(run(program))
    return turns


def _measured(case: Case, contender: Contender, outcomes: list[Outcome]) -> Measurement:
    measured = sorted((outcome for outcome in outcomes if outcome.measured), key=lambda o: float(o.facts[case.metric]))
    errors = [outcome.error for outcome in outcomes if outcome.error]
    runs = [float(outcome.facts[case.metric]) for outcome in outcomes if outcome.measured]
    each = {f"run {turn}": value for turn, value in enumerate(runs)}
    return Measurement(
        contender.name,
        measured[len(measured) // 2].facts | each if measured else {},
        runs,
        errors[0] if errors else None,
    )


def _sized(contender: Contender, quick: bool) -> Program:
    if not quick:
        return contender.program
    return dataclasses.replace(contender.program, arguments={**contender.program.arguments, **dict(contender.quick)})
