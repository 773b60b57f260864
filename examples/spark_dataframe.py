"""A Spark DataFrame as a source: the warmest reading per sensor and minute, from rows that Spark prepared.

    python examples/spark_dataframe.py

The program makes the SparkSession, Spark selects and filters, headwater keeps the state. With spark.readStream in place
of spark.createDataFrame the same job runs for ever. See docs/dataframes.md.
"""

from datetime import UTC, datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headwater.common import Duration, Time, WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.window import TumblingEventTimeWindows


def at(second):
    return datetime(2026, 1, 1, 12, second // 60, second % 60, tzinfo=UTC)


READINGS = [
    ("roof", at(1), 20.5),
    ("cellar", at(2), 11.0),
    ("roof", at(40), 22.0),
    ("broken", at(41), None),
    ("cellar", at(59), 13.0),
    ("roof", at(61), 24.0),
    ("cellar", at(75), 12.5),
    ("roof", at(90), 23.5),
]

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
readings = (
    spark.createDataFrame(READINGS, "sensor string, at timestamp, celsius double")
    .where("celsius IS NOT NULL")
    .select("sensor", "celsius", F.unix_millis("at").alias("ms"))
    .coalesce(1)
)

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
by_time = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(10)).with_timestamp_assigner(
    lambda row, _: row["ms"]
)
(
    env.from_dataframe(readings, by_time, "readings")
    .map(lambda row: (row["sensor"], row["ms"] // 60_000 % 60, row["celsius"]))
    .key_by(lambda reading: reading[0])
    .window(TumblingEventTimeWindows.of(Time.minutes(1)))
    .reduce(lambda left, right: left if left[2] >= right[2] else right)
    .print()
)
env.execute("warmest reading")
