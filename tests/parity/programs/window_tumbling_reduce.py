"""Tumbling event-time windows with a reduce."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())

DATA = [("a", 1000, 1), ("a", 2000, 2), ("b", 3000, 3), ("a", 11000, 4), ("b", 12000, 5), ("a", 25000, 6)]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection(DATA)
        .assign_timestamps_and_watermarks(STRATEGY)
        .key_by(lambda each: each[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .reduce(lambda left, right: (left[0], right[1], left[2] + right[2]))
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
