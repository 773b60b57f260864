"""A timer sets the next one, a few times."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Every(KeyedProcessFunction):
    def open(self, runtime_context):
        self.fired = runtime_context.get_list_state(ListStateDescriptor("fired", Types.LONG()))

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1] + 10)

    def on_timer(self, timestamp, ctx):
        self.fired.add(timestamp)
        if timestamp < 50:
            ctx.timer_service().register_event_time_timer(timestamp + 10)
        else:
            yield ctx.get_current_key(), list(self.fired.get())


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    results = (
        env.from_collection([("a", 1), ("b", 5), ("c", 40)])
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda pair: pair[0])
        .process(Every())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
