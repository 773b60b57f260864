"""A driver that counts into files or a table and kills itself: `lake_driver.py KIND PLACE DIRECTORY STEP TIMES`.

KIND is `files`, `delta` or `iceberg`. STEP is one of `headwater.testing.STEPS`, or one of the kind's steps inside a
commit. The driver is killed, with SIGKILL, the TIMES-th time that it gets there. STEP `stop@X` stops it there instead,
with SIGSTOP. With STEP "none" it runs to the end.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.common import Configuration, Encoder, WatermarkStrategy
from headwater.common.config.values import IN_PROCESS
from headwater.common.connector import Sink
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.delta import sink as delta
from headwater.datastream.connectors.file_store import LocalFiles
from headwater.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from headwater.datastream.connectors.iceberg import sink as iceberg
from tests.recovery.hitting import Hitter

IN_COMMIT = {
    "files": ("before-grow", "after-grow", "before-rename", "after-rename", "before-delete"),
    "delta": ("before-append", "after-append", "before-mark", "after-join"),
    "iceberg": ("before-append", "after-append", "before-mark", "after-join"),
}
"""Steps inside the commit of an epoch's output, by kind."""
SCHEMA = pa.schema([("key", pa.string()), ("n", pa.int64())])


def make_sink(kind: str, place: str) -> Sink:
    if kind == "files":
        encoder = Encoder(lambda row: f"{row['key']} {row['n']}\n".encode())
        builder = FileSink.for_row_format(place, encoder)
        builder.with_bucket_assigner(BucketAssigner.of(lambda row: f"odd={row['n'] % 2}"))
        return builder.with_rolling_policy(RollingPolicy.default_rolling_policy(400, 3_600_000, 3_600_000)).build()
    if kind == "delta":
        made: Any = delta.DeltaSink.for_table(place)
    else:
        Path(place).mkdir(parents=True, exist_ok=True)
        made = iceberg.IcebergSink.for_table(
            "test", "shop.counts", type="sql", uri=f"sqlite:///{place}/catalogue.db", warehouse=f"file://{place}/lake"
        )
    sink: Sink = made.set_schema(SCHEMA).set_min_commit_interval(1).build()
    return sink


def main(kind: str, place: str, directory: str, step: str, times: int, count: int) -> None:
    hitter = Hitter(step, times)
    hitter.watch_epochs()
    if kind == "files":
        hitter.watch(LocalFiles, "grow", "before-grow", "after-grow")
        hitter.watch(LocalFiles, "rename", "before-rename", "after-rename")
        hitter.watch(LocalFiles, "delete", "before-delete", None)
    else:
        committer = delta._DeltaCommitter if kind == "delta" else iceberg._IcebergCommitter
        hitter.watch(committer, "append", "before-append", "after-append")
        hitter.watch(committer, "read_mark", "before-mark", None)
        hitter.watch(committer, "_join", None, "after-join")
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict(
            {
                "headwater.master": IN_PROCESS,
                "execution.checkpointing.dir": directory,
                "headwater.epoch.min-records": "20",
                "headwater.epoch.max-records": "20",
            }
        )
    )
    env.set_parallelism(2)
    source = DataGeneratorSource(lambda i: {"key": f"k{i % 7}", "n": 1}, count=count)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    counted = numbers.key_by(lambda row: row["key"]).reduce(
        lambda one, other: {"key": one["key"], "n": one["n"] + other["n"]}
    )
    counted.sink_to(make_sink(kind, place))
    env.execute("counting")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))
