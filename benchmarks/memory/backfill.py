"""A year of records, hourly counts per key with event-time timers, read in `--epochs` epochs of equal size.

The records are two halves that each run through the whole year, so that two splits advance together. An hour's count is
one state value and one timer per key; both go when the hour is over, if event time advances within an epoch as it does
live. The harness samples the memory of the slots.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.headwater_job import CountingSink, headwater_environment, throughput
from benchmarks.workload import StampDir, arguments, report
from headwater.common import Types, WatermarkStrategy
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import KeyedProcessFunction, MapFunction, RuntimeContext
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.datastream.state import MapStateDescriptor

HOUR_MS = 3_600_000
YEAR_MS = 365 * 24 * HOUR_MS


class AsEvent(MapFunction):
    """Number -> (key, event time)."""

    def __init__(self, records: int, keys: int, stamps: StampDir) -> None:
        self.half = records // 2
        self.keys = keys
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("first")

    def map(self, value: int) -> tuple[int, int]:
        return value % self.keys, value % self.half * YEAR_MS // self.half


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: tuple[int, int], record_timestamp: int) -> int:
        return value[1]


class HourlyCount(KeyedProcessFunction):
    def __init__(self, stamps: StampDir) -> None:
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("slot")
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts", Types.LONG(), Types.LONG()))

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> None:
        end = (value[1] // HOUR_MS + 1) * HOUR_MS - 1
        count = self.counts.get(end)
        if count is None:
            ctx.timer_service().register_event_time_timer(end)
        self.counts.put(end, (count or 0) + 1)

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext
    ) -> Iterator[tuple[int, int, int | None]]:
        yield ctx.get_current_key(), timestamp, self.counts.get(timestamp)
        self.counts.remove(timestamp)


def main() -> None:
    options = arguments(records=10_000_000, keys=100, epochs=1, parallelism=2)
    stamps = StampDir(options.stamps)
    per_epoch = str(-(-options.records // options.epochs))
    env = headwater_environment(
        options,
        **{
            "headwater.epoch.min-records": per_epoch,
            "headwater.epoch.max-records": per_epoch,
        },
    )
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    (
        env.from_source(
            NumberSequenceSource(0, options.records - 1), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
        )
        .map(AsEvent(options.records, options.keys, stamps), output_type=Types.TUPLE([Types.LONG(), Types.LONG()]))
        .assign_timestamps_and_watermarks(watermarks)
        .key_by(lambda record: record[0], key_type=Types.LONG())
        .process(HourlyCount(stamps), output_type=Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()]))
        .sink_to(CountingSink(stamps))
    )
    env.execute("backfill")
    report(**throughput(stamps, options.records))


if __name__ == "__main__":
    main()
