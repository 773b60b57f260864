"""A join of two streams in a window, the way PyFlink programs write it."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())


class Join(ProcessWindowFunction):
    def process(self, key, context, elements):
        rows = list(elements)
        for left in sorted(row[2] for row in rows if row[3] == "left"):
            for right in sorted(row[2] for row in rows if row[3] == "right"):
                yield key, left, right


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    left = env.from_collection([("a", 1, "l1"), ("a", 2, "l2"), ("b", 3, "l3")]).map(lambda each: (*each, "left"))
    right = env.from_collection([("a", 5, "r1"), ("b", 2000, "r2"), ("a", 900, "r3")]).map(
        lambda each: (*each, "right")
    )
    results = (
        left.union(right)
        .assign_timestamps_and_watermarks(STRATEGY)
        .key_by(lambda each: each[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .process(Join())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
