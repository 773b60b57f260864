"""All kinds of state of one job as DataFrames: read, changed by Spark, written as a new savepoint, restored."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headwater.common import Time, WatermarkStrategy
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import (
    CheckpointedFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from headwater.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from headwater.state_processor import SavepointReader, SavepointWriter
from headwater.testing import CollectingSink
from tests.spark.harness import JobRunner, epochs_of, wait_for_epoch

COUNT = 6_000
KEYS = 4
END = COUNT * 10
TOTAL = ValueStateDescriptor("total")
LIMITS = MapStateDescriptor("limits")
MARKS = ListStateDescriptor("marks")


class ByIndex(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class Totals(KeyedProcessFunction):
    """Says when its timer fires what the sum is."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(TOTAL)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        if self.total.value() is None:
            ctx.timer_service().register_event_time_timer(END)
        self.total.update((self.total.value() or 0) + 1)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield "total", ctx.get_current_key(), self.total.value(), timestamp - END


class Judge(KeyedBroadcastProcessFunction):
    """Says at the end which limit was in force."""

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(LIMITS).put(*value)

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> None:
        ctx.timer_service().register_event_time_timer(END)

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Any:
        yield "limit", ctx.get_current_key(), ctx.get_broadcast_state(LIMITS).get("all")


class Elements(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        numbers = [value[1] for value in elements]
        yield "session", key, len(numbers), min(numbers)


class Mark(MapFunction, CheckpointedFunction):
    """Remembers, per partition, one number, and adds all that it knows to each record."""

    def initialize_state(self, context: Any) -> None:
        self.marks = context.get_operator_list_state(MARKS)

    def map(self, value: Any) -> Any:
        if not list(self.marks.get()):
            self.marks.add(1)
        return (*value, sum(self.marks.get()))


def build(env: StreamExecutionEnvironment, sink: CollectingSink) -> None:
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByIndex())
    source = DataGeneratorSource(lambda index: (f"k{index % KEYS}", index), COUNT)
    numbers = env.from_source(source, watermarks, "numbers").uid("numbers").map(Mark()).uid("marks")
    keyed = numbers.key_by(lambda value: value[0])
    limits = env.from_collection([("all", 1)]).uid("limits").broadcast(LIMITS)
    sums = keyed.map(lambda value: (value[0], 1, value[2])).key_by(lambda value: value[0])
    tumbling = sums.window(TumblingEventTimeWindows.of(Time.milliseconds(END)))
    largest = tumbling.reduce(lambda left, right: (left[0], left[1] + right[1], max(left[2], right[2]))).uid("tumbling")
    sessions = (
        keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(END))).process(Elements()).uid("sessions")
    )
    totals = keyed.process(Totals()).uid("totals")
    judged = keyed.connect(limits).process(Judge()).uid("judge")
    named = largest.map(lambda value: ("tumbling", *value))
    totals.union(judged, sessions, named).sink_to(sink).uid("out")


@pytest.mark.timeout(300)
def test_each_kind_of_state_travels_through_dataframes(run_job: JobRunner, tmp_path: Path) -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    env = run_job.environment(1, **epochs_of(300))
    build(env, CollectingSink(str(tmp_path / "first")))
    client = env.execute_async("frames")
    wait_for_epoch(client, 2)
    path = Path(client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(60))
    client.get_job_execution_result().result(60)
    assert CollectingSink(str(tmp_path / "first")).results() == [], "all comes at the end"
    spark = SparkSession.builder.getOrCreate()
    reader = SavepointReader(path)

    totals = reader.keyed_state("totals", "total").to_dataframe(spark)
    seen = {row.key: row.value for row in totals.collect()}
    assert set(seen) == {"k0", "k1", "k2", "k3"} and 0 < sum(seen.values()) < COUNT
    timers = reader.timers("totals").to_dataframe(spark)
    assert Counter(map(tuple, timers.collect())) == Counter(("event", END, key) for key in seen)
    tumbling = reader.windows("tumbling").to_dataframe(spark)
    assert tumbling.columns == ["key", "start_ms", "contents"]
    assert Counter((row.key, row.start_ms, row.contents[1]) for row in tumbling.collect()) == Counter(
        (key, 0, count) for key, count in seen.items()
    )
    sessions = reader.windows("sessions").to_dataframe(spark)
    assert {row.key: (row.start_ms, len(row.contents)) for row in sessions.collect()} == {
        key: (int(key[1]), count) for key, count in seen.items()
    }
    marks = reader.operator_state("marks", "marks").to_dataframe(spark)
    assert {row.value for row in marks.collect()} == {1}
    limits = reader.broadcast_state("judge", "limits").to_dataframe(spark)
    assert [tuple(row) for row in limits.collect()] == [("all", 1)]

    changed = tmp_path / "changed"
    writer = SavepointWriter.from_existing(path)
    writer.with_keyed_state("totals", TOTAL, totals.withColumn("value", F.col("value") + 1_000_000))
    later = F.when(F.col("key") == "k1", F.col("timestamp_ms") + 5).otherwise(F.col("timestamp_ms"))
    writer.with_timers("totals", timers.withColumn("timestamp_ms", later))
    more = F.struct(F.col("contents._1"), (F.col("contents._2") + 500).alias("_2"), F.col("contents._3"))
    writer.change_windows("tumbling", tumbling.filter("key = 'k2'").withColumn("contents", more))
    fewer = sessions.filter("key = 'k3'").withColumn("contents", F.slice("contents", 2, 1_000_000))
    writer.change_windows("sessions", fewer)
    one_for_each_partition = marks.union(marks).withColumn("value", F.col("value") + 100)
    writer.with_operator_state("marks", "marks", one_for_each_partition)
    writer.with_broadcast_state("judge", "limits", limits.withColumn("value", F.lit(7)))
    writer.write(changed)

    sink = CollectingSink(str(tmp_path / "second"))
    env = run_job.environment(2, **epochs_of(COUNT), **{"execution.state-recovery.path": str(changed)})
    build(env, sink)
    client = env.execute_async("frames")
    client.get_job_execution_result().result(100)
    each = COUNT // KEYS
    mark = 100 + 1
    assert Counter(map(tuple, sink.results())) == Counter(
        [("total", key, each + 1_000_000, 5 if key == "k1" else 0) for key in seen]
        + [("limit", key, 7) for key in seen]
        + [("session", key, each - (key == "k3"), int(key[1]) + (4 if key == "k3" else 0)) for key in seen]
        + [("tumbling", key, each + (500 if key == "k2" else 0), mark) for key in seen]
    )
