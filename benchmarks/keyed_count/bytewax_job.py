"""bytewax: a stateful map, snapshots off, which favours it. `--processes` above 1 runs a cluster on this machine.

Measured from the first batch read by any worker to the end of the last worker's sink.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.run import cli_main

from benchmarks.workload import EMIT_EVERY, StampDir, arguments, key_of, report

BATCH = 1000

Totals = tuple[int, int]
Output = tuple[int, int, int]


class NumbersPartition(StatelessSourcePartition[int]):
    """The numbers of one worker: every `step`th batch."""

    def __init__(self, first: int, step: int, records: int, stamps: StampDir) -> None:
        self._next = first * BATCH
        self._skip = step * BATCH
        self._records = records
        self._stamps = stamps
        self._seen = False

    def next_batch(self) -> range:
        if not self._seen:
            self._seen = True
            self._stamps.stamp("first")
        if self._next >= self._records:
            raise StopIteration
        batch = range(self._next, min(self._next + BATCH, self._records))
        self._next += self._skip
        return batch


class Numbers(DynamicSource[int]):
    def __init__(self, records: int, stamps: StampDir) -> None:
        self._records = records
        self._stamps = stamps

    def build(self, step_id: str, worker_index: int, worker_count: int) -> NumbersPartition:
        return NumbersPartition(worker_index, worker_count, self._records, self._stamps)


class DiscardPartition(StatelessSinkPartition[tuple[str, Output]]):
    def __init__(self, stamps: StampDir) -> None:
        self._stamps = stamps

    def write_batch(self, items: list[tuple[str, Output]]) -> None:
        pass

    def close(self) -> None:
        self._stamps.stamp("last")


class Discard(DynamicSink[tuple[str, Output]]):
    def __init__(self, stamps: StampDir) -> None:
        self._stamps = stamps

    def build(self, step_id: str, worker_index: int, worker_count: int) -> DiscardPartition:
        return DiscardPartition(self._stamps)


def count_and_sum(totals: Totals | None, value: int) -> tuple[Totals, list[Output]]:
    count, total = totals or (0, 0)
    count += 1
    total += value
    return (count, total), [(value, count, total)] if count % EMIT_EVERY == 0 else []


def dataflow(records: int, keys: int, stamps: StampDir) -> Dataflow:
    flow = Dataflow("keyed_count")
    numbers = op.input("numbers", flow, Numbers(records, stamps))
    keyed = op.map("with_key", numbers, lambda i: (str(key_of(i, keys)), i))
    totals = op.stateful_flat_map("count_and_sum", keyed, count_and_sum)
    op.output("discard", totals, Discard(stamps))
    return flow


def main() -> None:
    options = arguments(records=1_000_000, keys=1000, processes=1, process=-1, port=21010)
    stamps = StampDir(options.stamps)
    if options.processes == 1:
        cli_main(dataflow(options.records, options.keys, stamps), epoch_interval=timedelta(seconds=10))
    elif options.process >= 0:
        addresses = [f"127.0.0.1:{options.port + index}" for index in range(options.processes)]
        cli_main(
            dataflow(options.records, options.keys, stamps),
            process_id=options.process,
            addresses=addresses,
            epoch_interval=timedelta(seconds=10),
        )
        return
    else:
        workers = [
            subprocess.Popen([sys.executable, "-m", __spec__.name, *sys.argv[1:], "--process", str(index)])
            for index in range(options.processes)
        ]
        if any([worker.wait() for worker in workers]):
            raise SystemExit(1)
    seconds = stamps.seconds_between("first", "last")
    report(records=options.records, seconds=seconds, rate=options.records / seconds)


if __name__ == "__main__":
    main()
