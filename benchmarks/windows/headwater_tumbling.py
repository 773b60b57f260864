"""headwater: a tumbling window of 10 s in event time, the sum per key, reduced as records come. Checkpointing on.

The records are those of `keyed_count`; 10,000 happen per second, so that 100,000 are in a window. Measured as there.
"""

from __future__ import annotations

from benchmarks.headwater_job import CountingSink, headwater_environment, throughput
from benchmarks.workload import StampDir, arguments, event_time_ms, key_of, report
from headwater.common import Time, WatermarkStrategy
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import MapFunction, RuntimeContext
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.datastream.window import TumblingEventTimeWindows

Keyed = tuple[int, int]


class WithKey(MapFunction):
    def __init__(self, keys: int, stamps: StampDir) -> None:
        self.keys = keys
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("first")

    def map(self, value: int) -> Keyed:
        return key_of(value, self.keys), value


class EventTime(TimestampAssigner):
    def __init__(self, half: int, per_second: float) -> None:
        self.half = half
        self.per_second = per_second

    def extract_timestamp(self, value: Keyed, record_timestamp: int) -> int:
        return event_time_ms(value[1], self.half, self.per_second)


def main() -> None:
    options = arguments(records=2_000_000, keys=1000, parallelism=2, per_second=10_000, epoch="2 s")
    stamps = StampDir(options.stamps)
    env = headwater_environment(options)
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        EventTime(options.records // 2, options.per_second)
    )
    (
        env.from_source(NumberSequenceSource(0, options.records - 1), WatermarkStrategy.no_watermarks(), "numbers")
        .map(WithKey(options.keys, stamps))
        .assign_timestamps_and_watermarks(watermarks)
        .key_by(lambda record: record[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
        .sink_to(CountingSink(stamps))
    )
    env.execute("tumbling_sum")
    report(**throughput(stamps, options.records))


if __name__ == "__main__":
    main()
