"""headwater: a mean per key in windows of `--size` minutes that begin every minute, `--per-minute` records a minute.

With `--merge true` the aggregate function can merge, so that windows share slices; without, each record is added to
each of the windows that it belongs to. Measured as `keyed_count`.
"""

from __future__ import annotations

from benchmarks.headwater_job import CountingSink, headwater_environment, throughput
from benchmarks.windows.headwater_tumbling import EventTime, Keyed, WithKey
from benchmarks.workload import StampDir, arguments, report
from headwater.common import Time, WatermarkStrategy
from headwater.datastream import AggregateFunction
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.datastream.window import SlidingEventTimeWindows

Mean = tuple[int, int]


class MeanOfEach(AggregateFunction):
    """Its `merge` is a stub, as in many programs for PyFlink."""

    def create_accumulator(self) -> Mean:
        return 0, 0

    def add(self, value: Keyed, accumulator: Mean) -> Mean:
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator: Mean) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Mean, acc_b: Mean) -> Mean:
        raise NotImplementedError


class MeanOfSlices(MeanOfEach):
    def merge(self, acc_a: Mean, acc_b: Mean) -> Mean:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


def main() -> None:
    options = arguments(
        records=1_200_000, keys=1000, per_minute=10_000, size=60, merge="true", parallelism=2, epoch="2 s"
    )
    stamps = StampDir(options.stamps)
    env = headwater_environment(options)
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        EventTime(options.records // 2, options.per_minute / 60)
    )
    function = MeanOfSlices() if options.merge == "true" else MeanOfEach()
    (
        env.from_source(NumberSequenceSource(0, options.records - 1), WatermarkStrategy.no_watermarks(), "numbers")
        .map(WithKey(options.keys, stamps))
        .assign_timestamps_and_watermarks(watermarks)
        .key_by(lambda record: record[0])
        .window(SlidingEventTimeWindows.of(Time.minutes(options.size), Time.minutes(1)))
        .aggregate(function)
        .sink_to(CountingSink(stamps))
    )
    env.execute("sliding_mean")
    report(**throughput(stamps, options.records))


if __name__ == "__main__":
    main()
