"""The cases of this folder, with their sizes and promises."""

from __future__ import annotations

import sys

from benchmarks.case import HEADWATER, PARALLELISM, Case, Contender, Target, paired
from benchmarks.harness.environments import FLINK
from benchmarks.harness.process import Program
from benchmarks.nexmark.queries import MEASURED

FOLDER = "benchmarks.nexmark"
FLINK_SQL = "Flink SQL (JVM)"
RECORDS = 1_000_000
TIMEOUT_S = 100.0
FEWER = {"q4": 200_000, "q9": 200_000, "q18": 500_000, "q19": 500_000, "q20": 500_000}
"""Where a million events take a contender minutes."""
GOALS = {
    **dict.fromkeys(("q0", "q1", "q2", "q14", "q22"), 1.0),
    **dict.fromkeys(("q15", "q16", "q17"), 2.0),
    **dict.fromkeys(("q3", "q4", "q9", "q18", "q19", "q20"), 2.0),
    **dict.fromkeys(("q5", "q7", "q8", "q11"), 1.5),
}
"""{query: events per second as a multiple of Flink's}"""


def nexmark_cases() -> tuple[Case, ...]:
    return tuple(_case(name) for name in MEASURED)


def nexmark_targets() -> tuple[Target, ...]:
    return tuple(
        Target(
            f"nexmark_{name}",
            f"Nexmark {name}: headwater / Flink SQL in the JVM",
            lambda look, case=f"nexmark_{name}": paired(look, case, HEADWATER, FLINK_SQL),  # type: ignore[misc]
            GOALS[name],
            at_least=True,
        )
        for name in MEASURED
    )


def _case(name: str) -> Case:
    sizes: dict[str, str | int | float] = {
        "query": name,
        "records": FEWER.get(name, RECORDS),
        "parallelism": PARALLELISM,
    }
    quick = (("records", 20_000),)
    return Case(
        f"nexmark_{name}",
        f"Nexmark {name}, CSV files to nowhere, a checkpoint every second",
        "rate",
        "events/s",
        (
            Contender(
                HEADWATER, Program(f"{FOLDER}.headwater_query", sizes, timeout_s=TIMEOUT_S), quick=quick, peer=False
            ),
            Contender(
                FLINK_SQL,
                Program(f"{FOLDER}.flink_query", {**sizes, "maker": sys.executable}, FLINK, TIMEOUT_S),
                quick=quick,
            ),
        ),
        columns=(
            ("records", "events"),
            ("seconds", "seconds"),
            ("start_s", "of a thousand events, seconds"),
            ("cpu_us", "µs of processor time per event"),
        ),
    )
