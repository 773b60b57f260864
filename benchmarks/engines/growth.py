"""A small epoch through two keyed stages, at one parallelism after another: how much longer, and how much more CPU.

Epochs follow each other at once, with a checkpoint at each. Every split has `RECORDS` records for each of them. The
first `--warm` epochs of each parallelism are not counted: they start the slots.
"""

from __future__ import annotations

import statistics
import time
from argparse import Namespace
from dataclasses import dataclass

from benchmarks.case import CORES, GROWTH, PARALLELISM
from benchmarks.engines.fit import slope
from benchmarks.harness.cpu import cpu_by_kind, mark_processes
from benchmarks.headwater_job import CountingSink, headwater_environment
from benchmarks.latency.headwater_job import counted
from benchmarks.workload import StampDir, arguments, report
from headwater.common import Types, WatermarkStrategy
from headwater.common.connector import Source, Split, SplitReader
from headwater.runtime.job.handle import LocalJobClient

RECORDS = 10
STAGES = 2
POLL_S = 0.002


class SmallEpochs(Source):
    """A split per partition. It never ends, and it never has more than one epoch's records at once."""

    bounded = False
    waits = True

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        return [] if known else [Split(str(index), None) for index in range(parallelism)]

    def open_reader(self, split: Split, position: int | None) -> SplitReader:
        return _SmallReader(position or 0)


class _SmallReader(SplitReader):
    """Has records at every second call: the call between says that the epoch is over."""

    def __init__(self, position: int) -> None:
        self._next = position
        self._pausing = False

    def read_batch(self, max_records: int) -> list[str]:
        self._pausing = not self._pausing
        if not self._pausing:
            return []
        first, self._next = self._next, self._next + RECORDS
        return [f"{i} 0" for i in range(first, self._next)]

    def wait_readable(self, deadline: float, wake: int) -> bool:
        return True

    def position(self) -> int:
        return self._next


@dataclass(frozen=True)
class Measured:
    """Epochs at one parallelism."""

    epoch_ms: float
    cpu_by_kind_ms: dict[str, float]
    """Per epoch: of the driver, the JVM, the workers and the slots."""

    @property
    def cpu_ms(self) -> float:
        return sum(self.cpu_by_kind_ms.values())

    def cpu_per_task_ms(self, parallelism: int) -> float:
        """Per task of an epoch that runs as a Spark job: a task per split, and one per partition and keyed stage."""
        return self.cpu_ms / (parallelism * (1 + STAGES))


def measure(options: Namespace, parallelism: int, mark: str) -> Measured:
    options.parallelism = parallelism
    env = headwater_environment(options, **{"headwater.master": f"local[{CORES}]"})
    numbers = env.from_source(SmallEpochs(), WatermarkStrategy.no_watermarks(), "numbers", Types.STRING())
    counted(numbers, STAGES).sink_to(CountingSink(StampDir(options.stamps)))
    client = env.execute_async(f"growth-{parallelism}")
    assert isinstance(client, LocalJobClient)
    _epoch_times(client, options.warm)
    slots = {slot["pid"] for slot in client.progress()["slots"]}
    before, first = cpu_by_kind(mark, slots), client.progress()["epoch"]
    times = _epoch_times(client, options.epochs)
    after, last = cpu_by_kind(mark, slots), client.progress()["epoch"]
    client.cancel().result()
    spent = {kind: 1000 * (after[kind] - before[kind]) / (last - first) for kind in after}
    return Measured(statistics.median(times), spent)


def _epoch_times(client: LocalJobClient, epochs: int) -> list[float]:
    """The durations in ms of the epochs that are seen to end until `epochs` more have."""
    durations: list[float] = []
    seen = first = client.progress()["epoch"]
    while seen - first < epochs:
        if client.get_job_execution_result().done():
            client.get_job_execution_result().result()
        time.sleep(POLL_S)
        progress = client.progress()
        if progress["epoch"] > seen:
            seen = progress["epoch"]
            durations.append(progress["epoch_ms"])
    return durations


def main() -> None:
    options = arguments(engine="auto", epoch="20 ms", warm=5, epochs=16, largest=GROWTH[-1])
    mark = mark_processes()
    measure(options, PARALLELISM, mark)  # for nothing: the JVM compiles what it has run a few thousand times
    facts: dict[str, float] = {}
    measured: dict[int, Measured] = {}
    for parallelism in (each for each in GROWTH if each <= options.largest):
        found = measured[parallelism] = measure(options, parallelism, mark)
        facts[f"ms_{parallelism}"] = found.epoch_ms
        facts[f"cpu_ms_{parallelism}"] = found.cpu_ms
        facts["cpu_per_task_ms"] = found.cpu_per_task_ms(parallelism)
        facts |= {f"cpu_{kind}_ms": spent for kind, spent in found.cpu_by_kind_ms.items()}
        facts["ms_per_slot"] = slope([(STAGES * each, found.epoch_ms) for each, found in measured.items()])
        report(**facts)


if __name__ == "__main__":
    main()
