"""Timers of a function with two inputs: who did not pay is reminded."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedCoProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())


class Remind(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.ordered = runtime_context.get_state(ValueStateDescriptor("ordered", Types.LONG()))
        self.paid = runtime_context.get_state(ValueStateDescriptor("paid", Types.LONG()))

    def process_element1(self, value, ctx):
        self.ordered.update(value[1])
        ctx.timer_service().register_event_time_timer(value[1] + 100)

    def process_element2(self, value, ctx):
        self.paid.update(value[1])

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, self.ordered.value(), self.paid.value()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    orders = env.from_collection([("a", 1), ("b", 2), ("c", 3)]).assign_timestamps_and_watermarks(STRATEGY)
    payments = env.from_collection([("a", 10), ("c", 20)]).assign_timestamps_and_watermarks(STRATEGY)
    results = orders.connect(payments).key_by(lambda pair: pair[0], lambda pair: pair[0]).process(Remind())
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
