"""PyFlink: the same tumbling window, process mode, hashmap state; checkpointing off. `--bundle` above 0 tunes it.

Measured from the first record that reaches the first Python function to the end of a function behind the window, which
hands its results on.
"""

from __future__ import annotations

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import MapFunction
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.window import TumblingEventTimeWindows

from benchmarks.flink_environment import discarding_sink, flink_environment, larger_bundles
from benchmarks.workload import StampDir, arguments, event_time_ms, key_of, report

Keyed = tuple[int, int]


class WithKey(MapFunction):
    def __init__(self, keys: int, stamps: StampDir) -> None:
        self.keys = keys
        self.stamps = stamps
        self.seen = False

    def map(self, value: int) -> Keyed:
        if not self.seen:
            self.seen = True
            self.stamps.stamp("first")
        return key_of(value, self.keys), value


class EventTime(TimestampAssigner):
    def __init__(self, half: int, per_second: float) -> None:
        self.half = half
        self.per_second = per_second

    def extract_timestamp(self, value: Keyed, record_timestamp: int) -> int:
        return event_time_ms(value[1], self.half, self.per_second)


class HandOn(MapFunction):
    def __init__(self, stamps: StampDir) -> None:
        self.stamps = stamps

    def map(self, value: Keyed) -> Keyed:
        return value

    def close(self) -> None:
        self.stamps.stamp("last")


def main() -> None:
    options = arguments(records=100_000, keys=1000, parallelism=2, per_second=10_000, bundle=0)
    stamps = StampDir(options.stamps)
    env = flink_environment(options.parallelism, larger_bundles(options.bundle))
    pair = Types.TUPLE([Types.LONG(), Types.LONG()])
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        EventTime(options.records // 2, options.per_second)
    )
    source = NumberSequenceSource(0, options.records - 1)
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
        .map(WithKey(options.keys, stamps), output_type=pair)
        .assign_timestamps_and_watermarks(watermarks)
        .key_by(lambda record: record[0], key_type=Types.LONG())
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .reduce(lambda one, other: (one[0], one[1] + other[1]), output_type=pair)
        .map(HandOn(stamps), output_type=pair)
        .sink_to(discarding_sink())
    )
    env.execute("tumbling_sum")
    seconds = stamps.seconds_between("first", "last")
    report(records=options.records, seconds=seconds, rate=options.records / seconds)


if __name__ == "__main__":
    main()
