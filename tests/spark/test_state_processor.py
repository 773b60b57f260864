"""State of a real job as DataFrames, and a savepoint from a DataFrame."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headwater.common import Row
from headwater.common.errors import StateError
from headwater.datastream import KeyedProcessFunction, RuntimeContext
from headwater.datastream.state import ListStateDescriptor, ValueStateDescriptor
from headwater.state_processor import SavepointReader, SavepointWriter
from tests.spark.harness import JobRunner

TOTAL = ValueStateDescriptor("total")


class Totals(KeyedProcessFunction):
    """Per key a Row, a list, and a timer that never fires."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(TOTAL)
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        before = self.total.value() or Row(count=0, sum=0.0)
        self.total.update(Row(count=before.count + 1, sum=before.sum + value[1]))
        self.seen.add(value[1])
        ctx.timer_service().register_processing_time_timer(1 << 50)
        yield value


def test_state_travels_through_dataframes(run_job: JobRunner, tmp_path: Path) -> None:
    from pyspark.sql import Row as SparkRow
    from pyspark.sql import SparkSession

    from headwater.runtime.spark.state_frames import as_spark

    pairs = [(f"k{number % 5}", number) for number in range(50)]
    directory = run_job.checkpoint_dir()

    def build(env: Any) -> Any:
        return env.from_collection(pairs).key_by(lambda pair: pair[0]).process(Totals()).uid("totals")

    env = run_job.environment(2, directory)
    with build(env).execute_and_collect() as results:
        client = results.get_job_client()
        assert len([next(results) for _ in range(50)]) == 50
        client.cancel()
    spark = SparkSession.builder.getOrCreate()
    reader = SavepointReader(directory)

    frame = reader.keyed_state("totals", "total").to_dataframe(spark)
    assert frame.columns == ["key", "value"], "there are no namespaces"
    expected = {
        key: (10, float(sum(number for each, number in pairs if each == key))) for key in ("k0", "k1", "k2", "k3", "k4")
    }
    found = {row.key: (row.value["count"], row.value["sum"]) for row in frame.collect()}
    assert found == expected

    typed = reader.keyed_state("totals", "seen").to_dataframe(spark, "key STRING, value ARRAY<BIGINT>")
    assert {row.key: row.value for row in typed.collect()} == {
        key: [number for each, number in pairs if each == key] for key in expected
    }
    timers = reader.timers("totals").to_dataframe(spark).collect()
    assert sorted((row.time_domain, row.timestamp_ms, row.key) for row in timers) == [
        ("processing", 1 << 50, key) for key in sorted(expected)
    ]
    with pytest.raises(StateError, match="the column 'kye'; the rows have key, namespace, value"):
        reader.keyed_state("totals", "seen").to_dataframe(spark, "kye STRING")

    doubled = frame.selectExpr("key", "named_struct('count', value.count, 'sum', value.sum * 2) AS value")
    writer = SavepointWriter.from_existing(directory).with_keyed_state("totals", TOTAL, doubled)
    writer.change("totals", "total", "k0", Row(count=0, sum=0.0)).write(tmp_path / "savepoint")
    after = {row.key: row.value.sum for row in SavepointReader(tmp_path / "savepoint").keyed_state("totals", "total")}
    assert after == {key: 0.0 if key == "k0" else total * 2 for key, (_, total) in expected.items()}

    @dataclass
    class Point:
        x: int
        tags: set[str]

    class Pair(NamedTuple):
        left: Point
        right: Any

    assert as_spark(Pair(Point(1, {"a"}), Row(1, 2))) == SparkRow(left=SparkRow(x=1, tags=["a"]), right=(1, 2))
