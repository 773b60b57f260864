"""Timers of one key fire in the order of their times, with state that tells."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Order(KeyedProcessFunction):
    def open(self, runtime_context):
        self.text = runtime_context.get_state(ValueStateDescriptor("text", Types.STRING()))

    def process_element(self, value, ctx):
        for after in (30, 10, 20):
            ctx.timer_service().register_event_time_timer(value[1] + after)

    def on_timer(self, timestamp, ctx):
        text = f"{self.text.value() or ''} {timestamp}"
        self.text.update(text)
        yield ctx.get_current_key() + text


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    results = (
        env.from_collection([("a", 1), ("b", 5), ("a", 12)])
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda pair: pair[0])
        .process(Order())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
