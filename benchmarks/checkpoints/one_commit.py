"""What a small checkpoint costs on the local disk, part by part, in one process, without Spark.

    python -m benchmarks.checkpoints.one_commit --directory /var/tmp

Four slots with chains of twenty deltas, two sources, a FileSink of two partitions, three checkpoints retained. Prints
for each part the median, the 99th percentile and the processor time, in milliseconds. For system calls, run it under
`strace -f -c` with two values of `--epochs`, and take the difference.
"""

from __future__ import annotations

import argparse
import pickle
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from headwater.checkpoint.manifest import Manifest, PartitionRecord, SourceRecord, SplitRecord
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.snapshot.file import SnapshotRef, write_snapshot
from headwater.checkpoint.store import ManifestStore
from headwater.common.connector import Sink
from headwater.common.serialization import Encoder
from headwater.datastream.connectors.file_system import BucketAssigner, FileSink
from headwater.graph.plan import JobPlan, OperatorSpec, StageSpec
from headwater.operators.sink import SinkOperator
from headwater.runtime.job.committers import SinkCommitters
from headwater.state.snapshot.section import Section

SLOTS, CHAIN, RETAINED, PARTITIONS = 4, 20, 3, 2
SECTIONS = [Section("count", "keyed", "value", group, b"x" * 60) for group in range(8)]


class Clock:
    """Wall and processor time of each part of each epoch."""

    def __init__(self) -> None:
        self.wall: dict[str, list[float]] = defaultdict(list)
        self.cpu: dict[str, list[float]] = defaultdict(list)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.cpu[name].append((time.process_time() - cpu) * 1000)
        self.wall[name].append((time.perf_counter() - wall) * 1000)

    def report(self) -> None:
        print(f"{'part':28} {'median ms':>10} {'p99 ms':>10} {'mean CPU ms':>12}")
        for name, wall in self.wall.items():
            p99 = statistics.quantiles(wall, n=100)[98]
            print(f"{name:28} {statistics.median(wall):10.3f} {p99:10.3f} {statistics.mean(self.cpu[name]):12.3f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory", default=None)
    parser.add_argument("--epochs", type=int, default=500)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="headwater-one-commit-", dir=options.directory))
    try:
        run(root, options.epochs)
    finally:
        shutil.rmtree(root)


def run(root: Path, epochs: int) -> None:
    layout = CheckpointLayout(root / "job")
    encoder = Encoder.simple_string_encoder()
    sink = FileSink.for_row_format(str(root / "out"), encoder)
    sink = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    store = ManifestStore(layout)
    store.take_over("job")
    committers = SinkCommitters(plan(sink))
    operators = [SinkOperator(sink) for _ in range(PARTITIONS)]
    contexts = [context(partition) for partition in range(PARTITIONS)]
    for operator, its in zip(operators, contexts, strict=True):
        operator.context = its
    chains: list[list[SnapshotRef]] = [[] for _ in range(SLOTS)]
    clock = Clock()
    for epoch in range(1, epochs + CHAIN + 1):
        used = clock if epoch > CHAIN else Clock()
        attempt = f"{epoch}-0123456789abcdef"
        for slot, chain in enumerate(chains):
            path = layout.new_snapshot(1 + slot // 2, slot % 2, epoch, attempt, "delta")
            header = {"epoch": epoch, "kind": "delta", "key_groups": (0, 128)}
            with used.part("write_snapshot (one slot)"):
                chain.append(write_snapshot(path, header, SECTIONS))
            del chain[:-CHAIN]
        committables: list[bytes] = []
        for operator, its in zip(operators, contexts, strict=True):
            its.epoch, its.attempt_id = epoch, attempt
            with used.part("sink writer (one partition)"):
                operator.process_batch(["a record"] * 10, None)
                found = operator.prepare_commit()
                operator.make_durable()
            committables += [pickle.dumps(each) for each in found]
        with used.part("all of the coordinator"):
            with used.part("manifest and NEWEST"):
                store.write(manifest(epoch, chains, committables))
            with used.part("commit of the sink"):
                committers.commit({"files": committables})
            with used.part("COMMITTED"):
                store.note_committed(epoch)
            with used.part("garbage"):
                store.collect_garbage(RETAINED)
    clock.report()


def plan(sink: Sink) -> JobPlan:
    operator = OperatorSpec(1, "files", "files", lambda: SinkOperator(sink), (), PARTITIONS, 2, sink=sink)
    return JobPlan("job", 128, (), (StageSpec(0, PARTITIONS, (operator,)),))


def context(partition: int) -> Any:
    return SimpleNamespace(
        job_id="job1", name="files", partition=partition, parallelism=PARTITIONS, attempt_id="", epoch=0
    )


def manifest(epoch: int, chains: list[list[SnapshotRef]], committables: list[bytes]) -> Manifest:
    splits = {f"split-{number}": SplitRecord(b"p" * 80, b"q" * 20, b"s" * 60) for number in range(2)}
    return Manifest(
        job_id="job1",
        job_name="job",
        epoch=epoch,
        incarnation=1,
        created_ms=epoch,
        now_ms=epoch,
        plan_fingerprint="f" * 16,
        max_parallelism=128,
        operators={"count": "Count", "sum": "Sum"},
        partitions=[
            PartitionRecord(1 + slot // 2, slot % 2, list(chain), {"head:count": epoch})
            for slot, chain in enumerate(chains)
        ],
        sources={"left": SourceRecord(splits), "right": SourceRecord(splits)},
        committables={"files": committables},
        counters={"records_in": epoch},
    )


if __name__ == "__main__":
    main()
