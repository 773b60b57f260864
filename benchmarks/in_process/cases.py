"""The case of this folder, and its promise."""

from __future__ import annotations

from benchmarks.case import HEADWATER, Case, Contender, Target
from benchmarks.harness.process import Program


def in_process_cases() -> tuple[Case, ...]:
    return (
        Case(
            "in_process",
            "The README's program as a test in process, without Spark: built, run and compared",
            "median_ms",
            "ms, median",
            (Contender(HEADWATER, Program("benchmarks.in_process.readme_test", {"runs": 20}), repeats=3, peer=False),),
            columns=(("first_ms", "ms, the first"), ("cpu_ms", "ms of CPU"), ("records", "records")),
        ),
    )


def in_process_targets() -> tuple[Target, ...]:
    return (
        Target(
            "in_process",
            "a test of the README's program in process, ms",
            lambda look: look("in_process", HEADWATER, "median_ms"),
            100.0,
            at_least=False,
            shown_as="{:.0f}",
        ),
    )
