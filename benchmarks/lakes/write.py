"""Rows per second and core of writers, and milliseconds of commits, in one process: records of five fields."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.formats.decode import TYPE, record
from benchmarks.workload import arguments, report
from headwater.common import Encoder
from headwater.common.connector import CheckpointMoment, CommitterContext, Sink, WriterContext
from headwater.datastream.connectors.delta import DeltaSink
from headwater.datastream.connectors.file_system import BucketAssigner, BulkWriters, FileSink
from headwater.datastream.connectors.iceberg import IcebergSink

EPOCHS = 20
SMALL = 100
"""Records of an epoch whose commit is measured: a small one, because a commit moves names."""


def sinks(directory: str) -> dict[str, Sink]:
    flat = BucketAssigner.base_path_bucket_assigner()
    lines = FileSink.for_row_format(f"{directory}/lines", Encoder(lambda row: f"{row['id']},{row['name']}\n".encode()))
    json_lines = FileSink.for_bulk_format(f"{directory}/json", BulkWriters.json_lines())
    parquet = FileSink.for_bulk_format(f"{directory}/parquet", BulkWriters.parquet())
    Path(directory, "iceberg").mkdir()
    catalogue = {
        "type": "sql",
        "uri": f"sqlite:///{directory}/iceberg/c.db",
        "warehouse": f"file://{directory}/iceberg",
    }
    return {
        "lines": lines.with_bucket_assigner(flat).build(),
        "json": json_lines.with_bucket_assigner(flat).build(),
        "parquet": parquet.with_bucket_assigner(flat).build(),
        "delta": DeltaSink.for_table(f"{directory}/delta").set_schema(TYPE).build(),
        "iceberg": IcebergSink.for_table("bench", "shop.orders", **catalogue).set_schema(TYPE).build(),
    }


def write(sink: Sink, records: list[Any], epoch: int) -> list[Any]:
    writer = sink.create_writer(WriterContext("job", "sink", 0, 1, f"{epoch}-0", epoch, "sink", now_ms=epoch))
    for start in range(0, len(records), 2048):
        writer.write_batch(records[start : start + 2048], None)
    committables = writer.prepare_commit()
    writer.make_durable()
    return committables


def commits(sink: Sink, records: list[Any]) -> list[float]:
    committer = sink.create_committer()
    committer.open(CommitterContext("job", "sink", "sink"))
    held: list[Any] = []
    taken: list[float] = []
    for epoch in range(1, EPOCHS + 1):
        prepared = write(sink, records, epoch)
        started = time.perf_counter()
        chosen = committer.select(prepared, held, CheckpointMoment(epoch, epoch))
        committer.commit(chosen.due)
        taken.append((time.perf_counter() - started) * 1000)
        held = chosen.held
    return taken


def timed(run: Callable[[], Any]) -> float:
    started = time.process_time()
    run()
    return time.process_time() - started


def main() -> None:
    count = arguments(records=200_000).records
    records = [record(number) for number in range(count)]
    facts: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as directory:
        for name, sink in sinks(directory).items():
            rates = [
                count / timed(lambda sink=sink, turn=turn: write(sink, records, 1000 + turn)) for turn in range(1, 4)
            ]
            facts[f"{name}_rows"] = statistics.median(rates)
            facts[f"{name}_commit_ms"] = statistics.median(commits(sink, records[:SMALL]))
    report(**facts)


if __name__ == "__main__":
    main()
