"""Side outputs of a keyed process function, timers included."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, OutputTag, StreamExecutionEnvironment


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


FIRED = OutputTag("fired", Types.STRING())


class Remind(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1] + 5)
        yield FIRED, f"set by {value[0]}"
        yield value[0]

    def on_timer(self, timestamp, ctx):
        yield FIRED, f"{ctx.get_current_key()} at {timestamp}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    main = (
        env.from_collection([("a", 1), ("b", 2), ("a", 10)])
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda pair: pair[0])
        .process(Remind(), Types.STRING())
    )
    results = main.union(main.get_side_output(FIRED))
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
