"""The steady stream that the latency jobs get, and what is made of the times at which its records came out.

Record `i` is created at `start + i / rate`, whether or not the job is ready for it: a job that lags behind shows it. A
record is a line `"<i> <created>"`; the times are wall-clock seconds of one machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.latency.distribution import Histogram
from benchmarks.workload import percentile

KEYS = (100, 10)
"""How many keys the keyed stages have, in turn."""


@dataclass(frozen=True)
class Schedule:
    rate: int
    warm_up_s: float
    measured_s: float

    @property
    def records(self) -> int:
        return int(self.rate * (self.warm_up_s + self.measured_s))

    def created(self, start: float, i: int) -> float:
        return start + i / self.rate

    def due(self, start: float, now: float) -> int:
        """How many records were created by `now`."""
        return max(0, min(self.records, int((now - start) * self.rate) + 1))

    def line(self, start: float, i: int) -> str:
        return f"{i} {self.created(start, i):.6f}"

    def summary(self, seen: list[tuple[int, float]]) -> dict[str, Any]:
        """Latencies in ms over the records after the warm-up; `seen` holds (i, seconds from creation to sink)."""
        first = int(self.rate * self.warm_up_s)
        latencies = [seconds * 1000 for i, seconds in seen if i >= first]
        distinct = len({i for i, _ in seen})
        return {
            "records": len(latencies),
            "missing": self.records - distinct,
            "twice": len(seen) - distinct,
            "median_ms": percentile(latencies, 0.5),
            "p99_ms": percentile(latencies, 0.99),
            "max_ms": max(latencies),
            "histogram": Histogram.of(latencies).encode(),
        }


def number_of(line: str) -> int:
    return int(line.split(" ", 1)[0])


def first_key(line: str) -> int:
    return number_of(line) % KEYS[0]


def second_key(line: str) -> int:
    return number_of(line) % KEYS[1]
