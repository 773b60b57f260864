"""headwater: two streams joined by key, `--kind window` (tumbling, 10 s) or `interval` (right up to 10 s after left).

Each stream has 500 records per second of event time. With 5,000 keys a record has one partner on average. Measured
as `keyed_count`; a record of either stream counts as one. The harness can sample the memory of the slots.
"""

from __future__ import annotations

from benchmarks.headwater_job import CountingSink, headwater_environment, throughput
from benchmarks.windows.headwater_tumbling import EventTime, Keyed, WithKey
from benchmarks.workload import StampDir, arguments, report
from headwater.common import Time, WatermarkStrategy
from headwater.datastream import DataStream, JoinFunction, ProcessJoinFunction, RuntimeContext
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.datastream.window import TumblingEventTimeWindows

Pair = tuple[int, int, int]


class JoinInWindow(JoinFunction):
    def __init__(self, stamps: StampDir) -> None:
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("slot")

    def join(self, first: Keyed, second: Keyed) -> Pair:
        return first[0], first[1], second[1]


class JoinInInterval(ProcessJoinFunction):
    def __init__(self, stamps: StampDir) -> None:
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("slot")

    def process_element(self, left: Keyed, right: Keyed, ctx: ProcessJoinFunction.Context) -> list[Pair]:
        return [(left[0], left[1], right[1])]


def main() -> None:
    options = arguments(kind="interval", records=1_000_000, keys=5_000, per_second=500, parallelism=2, epoch="2 s")
    stamps = StampDir(options.stamps)
    env = headwater_environment(options)
    each = options.records // 2  # per stream
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        EventTime(each // 2, options.per_second)
    )

    def stream(name: str, first: int) -> DataStream:
        numbers = NumberSequenceSource(first, first + each - 1)
        return (
            env.from_source(numbers, WatermarkStrategy.no_watermarks(), name)
            .map(WithKey(options.keys, stamps))
            .assign_timestamps_and_watermarks(watermarks)
        )

    left, right = stream("left", 0), stream("right", each)
    if options.kind == "window":
        windows = TumblingEventTimeWindows.of(Time.seconds(10))
        pairs = left.join(right).where(0).equal_to(0).window(windows).apply(JoinInWindow(stamps))
    else:
        interval = left.key_by(0).interval_join(right.key_by(0)).between(Time.seconds(0), Time.seconds(10))
        pairs = interval.process(JoinInInterval(stamps))
    pairs.sink_to(CountingSink(stamps))
    env.execute(f"{options.kind}_join")
    report(**throughput(stamps, options.records))


if __name__ == "__main__":
    main()
