"""The timestamp of a record in a process function."""

from pyflink.common import Duration, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessFunction, StreamExecutionEnvironment


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Stamp(ProcessFunction):
    def process_element(self, value, ctx):
        yield value[0], ctx.timestamp()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(
        SecondField()
    )
    results = (
        env.from_collection([("a", 1000), ("b", 500), ("c", 3000)])
        .assign_timestamps_and_watermarks(strategy)
        .process(Stamp())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
