"""Spark's own aggregate: SQL in the JVM, no Python per record, state in RocksDB. Update mode.

Measured as rows over trigger time of all micro-batches but the first, which starts the query up. The outputs are
filtered as everywhere, but a micro-batch shows a key's count only once, so fewer pass.
"""

from __future__ import annotations

from benchmarks.spark_session import keyed_numbers, run_batches, spark_session
from benchmarks.workload import EMIT_EVERY, arguments


def main() -> None:
    options = arguments(batches=4, keys=1000, parallelism=2, batch=500_000)
    spark = spark_session(options.parallelism)
    totals = (
        keyed_numbers(spark, options.batch, options.keys, options.parallelism)
        .groupBy("key")
        .agg({"value": "sum", "*": "count"})
        .where(f"`count(1)` % {EMIT_EVERY} = 0")
    )
    run_batches(totals, options.batches, "update")


if __name__ == "__main__":
    main()
