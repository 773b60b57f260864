"""The smallest program that uses Spark: what a start costs without headwater."""

from __future__ import annotations

from pyspark.sql import SparkSession

from benchmarks.workload import report


def main() -> None:
    spark = SparkSession.builder.master("local[*]").getOrCreate()
    report(rows=spark.range(1).count())
    spark.stop()


if __name__ == "__main__":
    main()
