"""The cases of this folder, with their sizes and promises."""

from __future__ import annotations

from benchmarks.case import HEADWATER, PARALLELISM, Case, Contender, Target
from benchmarks.harness.process import Program

SINK, CHANGES = "postgres_sink", "postgres_changes"


def jdbc_cases() -> tuple[Case, ...]:
    return (
        _case(SINK, "Rows of three columns into PostgreSQL, exactly once (the server on the same cores)", "rows/s"),
        _case(CHANGES, "Changes of a PostgreSQL table out of its log (the server on the same cores)", "changes/s"),
    )


def _case(name: str, text: str, unit: str) -> Case:
    records = 3_000_000 if name == SINK else 1_000_000
    sizes: dict[str, str | int | float] = {"records": records, "parallelism": PARALLELISM}
    program = Program(f"benchmarks.jdbc.{name}", sizes)
    contender = Contender(HEADWATER, program, repeats=2, quick=(("records", 20_000),), peer=False)
    return Case(name, text, "rate", unit, (contender,), columns=(("records", "records"), ("seconds", "seconds")))


def jdbc_targets() -> tuple[Target, ...]:
    return (_rate(SINK, "PostgreSQL sink, rows/s", 200_000.0), _rate(CHANGES, "PostgreSQL changes/s", 50_000.0))


def _rate(case: str, text: str, limit: float) -> Target:
    return Target(case, text, lambda look: look(case, HEADWATER, "rate"), limit, at_least=True, shown_as="{:,.0f}")
