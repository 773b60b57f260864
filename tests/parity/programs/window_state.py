"""State per window and state over all windows of a key."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import CountTrigger, TumblingEventTimeWindows


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())


class Firings(ProcessWindowFunction):
    def open(self, runtime_context):
        self.in_window = ValueStateDescriptor("in_window", Types.INT())
        self.in_all = ValueStateDescriptor("in_all", Types.INT())

    def process(self, key, context, elements):
        in_window = context.window_state().get_state(self.in_window)
        in_all = context.global_state().get_state(self.in_all)
        in_window.update((in_window.value() or 0) + 1)
        in_all.update((in_all.value() or 0) + 1)
        yield key, context.window().start, len(list(elements)), in_window.value(), in_all.value()

    def clear(self, context):
        context.window_state().get_state(self.in_window).clear()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", 1), ("a", 2), ("a", 1003), ("a", 1004), ("a", 5), ("a", 6), ("b", 7), ("b", 8)])
        .assign_timestamps_and_watermarks(STRATEGY)
        .key_by(lambda each: each[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .trigger(CountTrigger.of(2))
        .process(Firings())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
