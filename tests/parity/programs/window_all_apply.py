"""Session windows over the whole stream with a window function."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import AllWindowFunction
from pyflink.datastream.window import EventTimeSessionWindows


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())


class Collect(AllWindowFunction):
    def apply(self, window, inputs):
        yield window.start, window.end, sorted(each[1] for each in inputs)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", 1), ("b", 3), ("a", 20), ("c", 22)])
        .assign_timestamps_and_watermarks(STRATEGY)
        .window_all(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
        .apply(Collect())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
