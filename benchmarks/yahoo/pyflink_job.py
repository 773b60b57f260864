"""PyFlink: the same from files, process mode, no checkpoints; the campaigns are in a dict, and the counts are dropped.

Both favour it: it asks no Redis and writes to none. `--bundle` above 0 tunes it. Measured from the first record that
reaches the first Python function to the end of the last window function.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.time import Time
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, MapFunction, ProcessWindowFunction
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat
from pyflink.datastream.window import TumblingEventTimeWindows

from benchmarks.flink_environment import discarding_sink, flink_environment, larger_bundles
from benchmarks.workload import StampDir, arguments, report
from benchmarks.yahoo.ads import campaigns, write_files


class Decode(MapFunction):
    def __init__(self, stamps: StampDir) -> None:
        self.stamps = stamps
        self.seen = False

    def map(self, value: str) -> tuple[str, str, int]:
        if not self.seen:
            self.seen = True
            self.stamps.stamp("first")
        event = json.loads(value)
        return event["ad_id"], event["event_type"], event["event_time"]


class Join(MapFunction):
    def open(self, runtime_context: Any) -> None:
        self.campaigns = campaigns()

    def map(self, value: tuple[str, str, int]) -> tuple[str, int]:
        return self.campaigns[value[0]], value[2]


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: tuple[str, int], record_timestamp: int) -> int:
        return value[1]


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, a: int, b: int) -> int:
        return a + b


class WithWindow(ProcessWindowFunction):
    def __init__(self, stamps: StampDir) -> None:
        self.stamps = stamps

    def process(self, key: str, context: Any, elements: Iterable[int]) -> Iterable[tuple[str, int, int]]:
        for count in elements:
            yield key, context.window().start, count

    def close(self) -> None:
        self.stamps.stamp("last")


def main() -> None:
    options = arguments(records=200_000, parallelism=2, bundle=0)
    stamps = StampDir(options.stamps)
    directory = os.path.join(os.getcwd(), "events")
    write_files(directory, options.records)
    env = flink_environment(options.parallelism, larger_bundles(options.bundle))
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), directory).build()
    watermarks = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "events")
        .map(Decode(stamps), output_type=Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG()]))
        .filter(lambda event: event[1] == "view")
        .map(Join(), output_type=Types.TUPLE([Types.STRING(), Types.LONG()]))
        .assign_timestamps_and_watermarks(watermarks.with_timestamp_assigner(EventTime()))
        .key_by(lambda pair: pair[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .aggregate(
            Count(),
            WithWindow(stamps),
            accumulator_type=Types.LONG(),
            output_type=Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()]),
        )
        .sink_to(discarding_sink())
    )
    env.execute("yahoo")
    seconds = stamps.seconds_between("first", "last")
    report(records=options.records, seconds=seconds, rate=options.records / seconds)


if __name__ == "__main__":
    main()
