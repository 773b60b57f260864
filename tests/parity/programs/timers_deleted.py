"""A timer that is deleted does not fire; one that is set twice fires once."""

from pyflink.common import WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Timeout(KeyedProcessFunction):
    def process_element(self, value, ctx):
        if value[2] == "stop":
            ctx.timer_service().delete_event_time_timer(100)
        else:
            ctx.timer_service().register_event_time_timer(100)
            ctx.timer_service().register_event_time_timer(200)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    results = (
        env.from_collection([("a", 1, "go"), ("b", 2, "go"), ("a", 3, "stop"), ("b", 4, "go")])
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda each: each[0])
        .process(Timeout())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
