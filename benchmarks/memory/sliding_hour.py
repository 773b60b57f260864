"""A count per key in windows of an hour that begin every minute, one record per key and minute: what do slots hold?

Each key has 60 slices at once. The `loaded` stamp comes when the first hour is complete, and 10 more minutes follow.
"""

from __future__ import annotations

from benchmarks.headwater_job import CountingSink, headwater_environment, throughput
from benchmarks.workload import StampDir, arguments, report
from headwater.common import Time, WatermarkStrategy
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import AggregateFunction, MapFunction, RuntimeContext
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.datastream.window import SlidingEventTimeWindows

MINUTE_MS = 60_000
MINUTES = 70
Event = tuple[int, int]


class AsEvent(MapFunction):
    """Number -> (key, event time): all keys in the first minute, all in the second, and so on."""

    def __init__(self, keys: int, half: int, stamps: StampDir) -> None:
        self.keys = keys
        self.half = half
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("first")

    def map(self, value: int) -> Event:
        # At parallelism 2 the two halves are read side by side: one has the even keys, the other the odd ones.
        number, parity = value % self.half, value // self.half
        own_keys = self.keys // 2
        return number % own_keys * 2 + parity, number * MINUTE_MS // own_keys


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Event, record_timestamp: int) -> int:
        return value[1]


class Count(AggregateFunction):
    def __init__(self, loaded_from_ms: int, stamps: StampDir) -> None:
        self.loaded_from_ms = loaded_from_ms
        self.stamps = stamps
        self.loaded = False

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("slot")

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Event, accumulator: int) -> int:
        if value[1] >= self.loaded_from_ms and not self.loaded:
            self.loaded = True
            self.stamps.stamp("loaded")
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


def main() -> None:
    options = arguments(keys=100_000, parallelism=2, epoch="1 s")
    stamps = StampDir(options.stamps)
    records = MINUTES * options.keys
    env = headwater_environment(options)
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    (
        env.from_source(NumberSequenceSource(0, records - 1), WatermarkStrategy.no_watermarks(), "numbers")
        .map(AsEvent(options.keys, records // 2, stamps))
        .assign_timestamps_and_watermarks(watermarks)
        .key_by(lambda event: event[0])
        .window(SlidingEventTimeWindows.of(Time.hours(1), Time.minutes(1)))
        .aggregate(Count(60 * MINUTE_MS, stamps))
        .sink_to(CountingSink(stamps))
    )
    env.execute("sliding_hour")
    report(**throughput(stamps, records), keys=options.keys)


if __name__ == "__main__":
    main()
