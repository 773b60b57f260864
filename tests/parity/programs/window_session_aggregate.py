"""Session windows with an aggregate: accumulators are merged."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeSessionWindows


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0, ""

    def add(self, value, accumulator):
        return accumulator[0] + 1, value[0]

    def get_result(self, accumulator):
        return accumulator[1], accumulator[0]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] or acc_b[1]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", 1), ("a", 5), ("a", 9), ("b", 3), ("a", 30)])
        .assign_timestamps_and_watermarks(STRATEGY)
        .key_by(lambda each: each[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
        .aggregate(Count())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
