"""PySpark `transformWithState` over rows, one ValueState per key in RocksDB: the nearest thing Spark itself offers.

Measured as rows over trigger time of all micro-batches but the first, which starts the query and the workers up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks.spark_session import keyed_numbers, run_batches, spark_session
from benchmarks.workload import EMIT_EVERY, arguments


class CountAndSum(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self.totals = handle.getValueState("totals", "count LONG, total LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        # A key's rows of one micro-batch come in one call, so state is touched once per key and batch. Its natural use.
        count, total = self.totals.get() or (0, 0)
        for row in rows:
            count += 1
            total += row.value
            if count % EMIT_EVERY == 0:
                yield Row(key=key[0], count=count, total=total)
        self.totals.update((count, total))

    def close(self) -> None:
        pass


def main() -> None:
    options = arguments(batches=4, keys=1000, parallelism=2, batch=100_000)
    spark = spark_session(options.parallelism)
    totals = (
        keyed_numbers(spark, options.batch, options.keys, options.parallelism)
        .groupBy("key")
        .transformWithState(
            statefulProcessor=CountAndSum(),
            outputStructType="key LONG, count LONG, total LONG",
            outputMode="Update",
            timeMode="None",
        )
    )
    run_batches(totals, options.batches, "update")


if __name__ == "__main__":
    main()
