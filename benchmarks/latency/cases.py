"""The cases of this folder, with their sizes and promises."""

from __future__ import annotations

from benchmarks.case import (
    HEADWATER,
    NO_ENGINE,
    ONLY_WRITES,
    PARALLELISM,
    PYFLINK,
    RESIDENT,
    SHUFFLE,
    Case,
    Contender,
    Lookup,
    Target,
)
from benchmarks.harness.environments import FLINK
from benchmarks.harness.process import Program

FOLDER = "benchmarks.latency"
PYFLINK_SETTINGS: dict[str, dict[str, int]] = {
    PYFLINK: {},
    "PyFlink, bundle.time 20 ms": {"bundle-time": 20},
    "PyFlink, bundles and buffers 5 ms": {"bundle-time": 5, "buffer-timeout": 5},
}
"""PyFlink's settings that are tried. At its defaults a bundle waits for a second, and a network buffer for 100 ms."""
MAIN = "latency_1k"
MEDIAN_MS, P99_MS = 12.0, 50.0

CASES = {
    MAIN: (1000, 2, "Source to sink through two keyed stages at 1,000 records/s"),
    "latency_10": (10, 2, "Source to sink through two keyed stages at 10 records/s"),
    "latency_20k": (20_000, 2, "Source to sink through two keyed stages at 20,000 records/s"),
    "latency_4_stages": (1000, 4, "Source to sink through four keyed stages at 1,000 records/s"),
}
"""{name: (records/s, keyed stages, title)}"""


def latency_cases() -> tuple[Case, ...]:
    return tuple(_case(name) for name in CASES)


def _case(name: str) -> Case:
    rate, stages, title = CASES[name]
    main = name == MAIN
    steady: dict[str, str | int | float] = {
        "rate": rate,
        "warm": 10.0 if main else 5.0,
        "measured": 20.0 if main else 10.0,
    }
    quick = (("warm", 1.0), ("measured", 2.0))

    def ours(contender: str, engine: str) -> Contender:
        program = Program(
            f"{FOLDER}.headwater_job",
            {**steady, "stages": stages, "engine": engine, "parallelism": PARALLELISM},
            timeout_s=120,
        )
        return Contender(contender, program, quick=quick, peer=False)

    def flink(contender: str, tuned: dict[str, int]) -> Contender:
        arguments = {**steady, "parallelism": PARALLELISM, **tuned}
        return Contender(contender, Program(f"{FOLDER}.pyflink_job", arguments, FLINK), quick=quick)

    floor = Contender(NO_ENGINE, Program(f"{FOLDER}.floor", steady), quick=quick, peer=False)
    persisted = {**steady, "slots": stages * PARALLELISM, "parallelism": PARALLELISM}
    writes = Contender(ONLY_WRITES, Program(f"{FOLDER}.floor", persisted), quick=quick, peer=False)
    return Case(
        name,
        title,
        "median_ms",
        "ms, median",
        (
            ours(HEADWATER, "auto"),
            ours(RESIDENT, "resident"),
            ours(SHUFFLE, "shuffle"),
            *((floor, writes, *(flink(name, tuned) for name, tuned in PYFLINK_SETTINGS.items())) if main else ()),
        ),
        columns=(
            ("p99_ms", "ms, p99"),
            ("max_ms", "ms, max"),
            ("records", "records"),
            ("missing", "missing"),
            ("commits", "commits"),
        ),
        limits_ms=(("median", MEDIAN_MS), ("p99", P99_MS)),
    )


def latency_targets() -> tuple[Target, ...]:
    return (
        *(target for name in CASES for target in _absolute(name)),
        _ratio("median latency / PyFlink's best", "median_ms", 0.03),
        _ratio("p99 latency / PyFlink's best", "p99_ms", 0.10),
    )


def _absolute(name: str) -> tuple[Target, Target]:
    rate, stages, _ = CASES[name]
    where = f"{stages} keyed stages, {rate:,} records/s, ms"
    return (
        Target(name, f"median latency, {where}", lambda look: look(name, HEADWATER, "median_ms"), MEDIAN_MS,
               at_least=False, shown_as="{:.1f}"),
        Target(name, f"p99 latency, {where}", lambda look: look(name, HEADWATER, "p99_ms"), P99_MS,
               at_least=False, shown_as="{:.1f}"),
    )  # fmt: skip


def _ratio(text: str, fact: str, limit: float) -> Target:
    def value(look: Lookup) -> float:
        return look(MAIN, HEADWATER, fact) / min(look(MAIN, contender, fact) for contender in PYFLINK_SETTINGS)

    return Target(MAIN, text, value, limit, at_least=False, shown_as="{:.3f}")
