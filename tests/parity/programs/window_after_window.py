"""Windows of windows: maxima per key, then over all keys."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import ProcessAllWindowFunction
from pyflink.datastream.window import TumblingEventTimeWindows


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())


class Best(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield context.window().start, max((each[2], each[0]) for each in elements)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", 1, 5), ("b", 2, 9), ("a", 3, 7), ("b", 1004, 1), ("a", 1005, 3)])
        .assign_timestamps_and_watermarks(STRATEGY)
        .key_by(lambda each: each[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .reduce(lambda left, right: left if left[2] >= right[2] else right)
        .window_all(TumblingEventTimeWindows.of(Time.seconds(1)))
        .process(Best())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
