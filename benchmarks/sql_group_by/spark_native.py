"""Spark's own streaming aggregate of the same kind: all updated keys of a micro-batch, in update mode, into nowhere.

Measured as `benchmarks.keyed_count.spark_native`.
"""

from __future__ import annotations

from benchmarks.spark_session import keyed_numbers, run_batches, spark_session
from benchmarks.workload import arguments


def main() -> None:
    options = arguments(batches=4, keys=1_000_000, parallelism=2, batch=1_000_000)
    spark = spark_session(options.parallelism)
    totals = keyed_numbers(spark, options.batch, options.keys, options.parallelism).groupBy("key")
    run_batches(totals.agg({"value": "sum", "*": "count"}), options.batches, "update")


if __name__ == "__main__":
    main()
