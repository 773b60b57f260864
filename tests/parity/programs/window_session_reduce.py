"""Session windows with a reduce: merged windows have merged results."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeSessionWindows


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", 1, 1), ("a", 5, 2), ("a", 9, 4), ("b", 3, 8), ("a", 30, 16)])
        .assign_timestamps_and_watermarks(STRATEGY)
        .key_by(lambda each: each[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
        .reduce(lambda left, right: (left[0], max(left[1], right[1]), left[2] + right[2]))
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
