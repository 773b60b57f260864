"""A window over two streams."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    clicks = env.from_collection([("a", 1, 1), ("b", 2, 1)]).assign_timestamps_and_watermarks(STRATEGY)
    views = env.from_collection([("a", 5, 10), ("a", 1500, 10)]).assign_timestamps_and_watermarks(STRATEGY)
    results = (
        clicks.union(views)
        .key_by(lambda each: each[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .reduce(lambda left, right: (left[0], max(left[1], right[1]), left[2] + right[2]))
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
