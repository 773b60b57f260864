"""What a case, a contender and a promise are, and what the contenders are called."""

from __future__ import annotations

import contextlib
import itertools
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.harness.process import Program

PARALLELISM = 2
CORES = 2
"""Of Spark, where the parallelism of a case is another one."""
GROWTH = (1, 2, 4, 8, 16)
"""Parallelisms at which an epoch is measured."""
LARGE_BUNDLE = 100_000

HEADWATER = "headwater"
HEADWATER_OFF = "headwater, exactly-once off"
RESIDENT = "headwater, resident"
SHUFFLE = "headwater, shuffle"
PYFLINK = "PyFlink, defaults"
PYFLINK_TUNED = f"PyFlink, bundles of {LARGE_BUNDLE:,}"
SPARK_NATIVE = "Spark native aggregate, RocksDB"
SPARK_TRANSFORM = "Spark transformWithState, RocksDB"
BYTEWAX_ONE = "bytewax, 1 process"
BYTEWAX_TWO = "bytewax, 2 processes"
NO_ENGINE = "no engine (the floor)"
ONLY_WRITES = "no engine, an epoch's writes"
BARE_LOOP = "bare Python loop, 1 core"


@dataclass(frozen=True)
class Contender:
    """One framework's program for one case. `quick` replaces arguments in a run that only shows that all works."""

    name: str
    program: Program
    repeats: int = 1
    """How often it runs; the median by `metric` counts."""
    quick: tuple[tuple[str, str | int | float], ...] = ()
    peer: bool = True


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    metric: str
    """The fact by which repeats are compared and the table is led."""
    unit: str
    contenders: tuple[Contender, ...]
    columns: tuple[tuple[str, str], ...] = ()
    """Further facts to show: (fact, heading)."""
    limits_ms: tuple[tuple[str, float], ...] = ()
    """What is promised of the latencies whose distribution the report draws: (what, ms)."""


Lookup = Callable[[str, str, str], float]


def paired(look: Lookup, case: str, first: str, second: str) -> float:
    """`first` / `second` in each turn, the median of these. They ran one after the other, so a machine that is slower
    for a while, as shared ones are, was slower for both."""
    ratios = [look(case, first, "run 0") / look(case, second, "run 0")]
    with contextlib.suppress(KeyError):
        for turn in itertools.count(1):
            ratios.append(look(case, first, f"run {turn}") / look(case, second, f"run {turn}"))
    return statistics.median(ratios)


"""(case, contender, fact) -> value; raises KeyError if that was not measured."""


@dataclass(frozen=True)
class Target:
    """A promise of the project, computed from this run's own numbers."""

    case: str
    text: str
    value: Callable[[Lookup], float]
    limit: float
    at_least: bool
    shown_as: str = "{:.2f}"

    def met(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit
