"""Lateness settings on a stream on which nothing is late."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())

LATE = OutputTag("late", Types.PICKLED_BYTE_ARRAY())


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    main = (
        env.from_collection([("a", 2000, 1), ("a", 1, 2), ("b", 3, 4), ("a", 1004, 8)])
        .assign_timestamps_and_watermarks(STRATEGY)
        .key_by(lambda each: each[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .allowed_lateness(500)
        .side_output_late_data(LATE)
        .reduce(lambda left, right: (left[0], left[1], left[2] + right[2]))
    )
    results = main.union(main.get_side_output(LATE))
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
