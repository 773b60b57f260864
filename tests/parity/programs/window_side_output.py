"""A window function with a side output."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())

SINGLES = OutputTag("singles", Types.STRING())


class Collect(ProcessWindowFunction):
    def process(self, key, context, elements):
        times = sorted(each[1] for each in elements)
        if len(times) == 1:
            yield SINGLES, f"only one for {key} at {times[0]}"
        else:
            yield f"{key} {times}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    main = (
        env.from_collection([("a", 1), ("a", 2), ("b", 3), ("a", 1004)])
        .assign_timestamps_and_watermarks(STRATEGY)
        .key_by(lambda each: each[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .process(Collect(), Types.STRING())
    )
    results = main.union(main.get_side_output(SINGLES))
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
