"""The plain Spark that headwater is compared with: local, streaming state in RocksDB, tuned as its guide says."""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from benchmarks.workload import FIRST_FACTOR, MASK, SECOND_FACTOR, report

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def spark_session(parallelism: int) -> SparkSession:
    return (
        SparkSession.builder.master(f"local[{parallelism}]")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", parallelism)
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        .config("spark.local.dir", os.getcwd())
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )


def keyed_numbers(spark: SparkSession, records_per_batch: int, keys: int, parallelism: int) -> DataFrame:
    """An endless stream of (key, value), `records_per_batch` in each micro-batch, made inside the JVM."""
    return (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", records_per_batch)
        .option("numPartitions", parallelism)
        .load()
        .selectExpr("value", f"(value * {FIRST_FACTOR}) & {MASK} AS mixed")
        .selectExpr("value", f"((mixed ^ shiftright(mixed, 15)) * {SECOND_FACTOR}) & {MASK} AS mixed")
        .selectExpr("value", f"(mixed ^ shiftright(mixed, 13)) % {keys} AS key")
    )


def run_batches(stream: DataFrame, batches: int, output_mode: str) -> None:
    """Run micro-batches until `batches` are measured; the first warms the JVM and the workers and is not counted."""
    query = (
        stream.writeStream.format("noop")
        .outputMode(output_mode)
        .option("checkpointLocation", tempfile.mkdtemp(dir=os.getcwd()))
        .start()
    )
    _watch(query, batches)
    # The micro-batch under way is of no interest, and stopping a query in its midst makes Spark throw at length.
    gateway: Any = SparkContext._gateway
    gateway.proc.kill()
    os._exit(0)


def _watch(query: StreamingQuery, batches: int) -> None:
    """Return once `batches` micro-batches after the first have ended."""
    seen: dict[int, dict[str, Any]] = {}
    while True:
        for entry in query.recentProgress:
            batch = int(entry["batchId"])
            if batch not in seen:
                seen[batch] = {"rows": int(entry["numInputRows"]), "ms": int(entry["durationMs"]["triggerExecution"])}
                _report_batches(seen)
        if failure := query.exception():
            raise RuntimeError(str(failure))
        if sum(1 for batch in seen if batch > 0) >= batches:
            return
        time.sleep(0.05)


def _report_batches(seen: dict[int, dict[str, Any]]) -> None:
    """Report what is known so far, so that a run that is stopped has a result."""
    counted = [progress for batch, progress in seen.items() if batch > 0]
    if not counted:
        return
    records = sum(progress["rows"] for progress in counted)
    seconds = sum(progress["ms"] for progress in counted) / 1000
    report(records=records, seconds=seconds, rate=records / seconds, batches=len(counted))
