"""headwater, exactly once: a record is seen when the epoch that holds it was committed, after its manifest.

The source is an ordinary connector that offers each record when it is due.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.headwater_job import headwater_environment
from benchmarks.latency.schedule import Schedule, first_key, second_key
from benchmarks.workload import arguments, report
from headwater.common import Types, WatermarkStrategy
from headwater.common.connector import Committer, Sink, SinkWriter, Source, Split, SplitReader, WriterContext
from headwater.datastream import KeyedProcessFunction, RuntimeContext
from headwater.datastream.state import ValueStateDescriptor


class ScheduledSource(Source):
    """One split; the schedule starts when the driver asks for it. Budgets cannot slow creation down, only reading."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        return [] if known else [Split("lines", time.time())]

    def open_reader(self, split: Split, position: int | None) -> SplitReader:
        return ScheduledReader(self.schedule, split.payload, position or 0)


class ScheduledReader(SplitReader):
    def __init__(self, schedule: Schedule, start: float, position: int) -> None:
        self._schedule = schedule
        self._start = start
        self._next = position

    def read_batch(self, max_records: int) -> list[str] | None:
        if self._next >= self._schedule.records:
            return None
        first = self._next
        self._next = min(first + max_records, self._schedule.due(self._start, time.time()))
        return [self._schedule.line(self._start, i) for i in range(first, self._next)]

    def position(self) -> int:
        return self._next


class CommitTimeSink(Sink):
    """Hands every line to the committer, which adds (i, seconds since creation) to a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return LineWriter()

    def create_committer(self) -> Committer:
        return CommitTimes(self.path)


class LineWriter(SinkWriter):
    def __init__(self) -> None:
        self._lines: list[str] = []

    def write_batch(self, values: Sequence[str], timestamps: Sequence[int | None] | None) -> None:
        self._lines += values

    def prepare_commit(self) -> list[Any]:
        lines, self._lines = self._lines, []
        return [lines]

    def abort(self) -> None:
        self._lines = []


class CommitTimes(Committer):
    def __init__(self, path: str) -> None:
        self._path = path

    def commit(self, committables: list[Any]) -> None:
        now = time.time()
        pairs = [line.split() for lines in committables for line in lines]
        with open(self._path, "a", encoding="utf-8") as file:
            file.writelines(json.dumps((int(i), now - float(created))) + "\n" for i, created in pairs)


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        self.count.update((self.count.value() or 0) + 1)
        yield value


def main() -> None:
    options = arguments(rate=1000, warm=10.0, measured=20.0, parallelism=2, epoch="20 ms")
    schedule = Schedule(options.rate, options.warm, options.measured)
    seen = Path(options.stamps) / "seen.jsonl"
    env = headwater_environment(options)
    (
        env.from_source(ScheduledSource(schedule), WatermarkStrategy.no_watermarks(), "lines", Types.STRING())
        .key_by(first_key, key_type=Types.LONG())
        .process(Count(), output_type=Types.STRING())
        .key_by(second_key, key_type=Types.LONG())
        .process(Count(), output_type=Types.STRING())
        .sink_to(CommitTimeSink(str(seen)))
    )
    env.execute("latency")
    report(**schedule.summary([json.loads(line) for line in seen.read_text(encoding="utf-8").splitlines()]))


if __name__ == "__main__":
    main()
