"""Runs the cases one program after another, with nothing beside them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from benchmarks.case import Case, Contender
from benchmarks.harness.process import Outcome, Program, run


@dataclass(frozen=True)
class Measurement:
    """What came of one contender: the facts of its median run, and the metric of each run."""

    contender: str
    facts: dict[str, Any]
    all_runs: list[float]
    error: str | None

    @property
    def measured(self) -> bool:
        return bool(self.facts)


def run_case(case: Case, *, quick: bool, with_peers: bool) -> list[Measurement]:
    """Run all contenders of `case` in order and say on standard output what each gave."""
    print(f"\n{case.title}", flush=True)
    measurements = []
    for contender in case.contenders:
        if contender.peer and not with_peers:
            continue
        measurement = _measure(case, contender, quick)
        shown = f"{measurement.facts[case.metric]:,.1f} {case.unit}" if measurement.measured else "no result"
        note = f"   [{measurement.error}]" if measurement.error else ""
        print(f"  {contender.name:<36} {shown}{note}", flush=True)
        measurements.append(measurement)
    return measurements


def _measure(case: Case, contender: Contender, quick: bool) -> Measurement:
    program = _sized(contender, quick)
    program.environment.ensure()
    outcomes: list[Outcome] = []
    for _ in range(1 if quick else contender.repeats):
        outcomes.append(run(program))
        if not outcomes[-1].measured:
            break
    measured = sorted((outcome for outcome in outcomes if outcome.measured), key=lambda o: float(o.facts[case.metric]))
    errors = [outcome.error for outcome in outcomes if outcome.error]
    return Measurement(
        contender.name,
        measured[len(measured) // 2].facts if measured else {},
        [float(outcome.facts[case.metric]) for outcome in outcomes if outcome.measured],
        errors[0] if errors else None,
    )


def _sized(contender: Contender, quick: bool) -> Program:
    if not quick:
        return contender.program
    return dataclasses.replace(contender.program, arguments={**contender.program.arguments, **dict(contender.quick)})
