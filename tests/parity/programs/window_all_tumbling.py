"""Windows over the whole stream."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import ProcessAllWindowFunction
from pyflink.datastream.window import TumblingEventTimeWindows


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())


class Collect(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield context.window().start, context.window().end, sorted(each[1] for each in elements)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", 1), ("b", 999), ("a", 1000), ("c", 2500)])
        .assign_timestamps_and_watermarks(STRATEGY)
        .window_all(TumblingEventTimeWindows.of(Time.seconds(1)))
        .process(Collect())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
