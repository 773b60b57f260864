"""A trigger of the program's own, with state and a timer."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ReducingStateDescriptor
from pyflink.datastream.window import TimeWindow, Trigger, TriggerResult, TumblingEventTimeWindows


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())


class EverySecondAndAtTheEnd(Trigger):
    def __init__(self):
        self.descriptor = ReducingStateDescriptor("count", lambda left, right: left + right, Types.LONG())

    def on_element(self, element, timestamp, window: TimeWindow, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        count = ctx.get_partitioned_state(self.descriptor)
        count.add(1)
        if count.get() >= 2:
            count.clear()
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window: TimeWindow, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window: TimeWindow, ctx):
        return TriggerResult.FIRE_AND_PURGE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window: TimeWindow, ctx):
        ctx.get_partitioned_state(self.descriptor).clear()
        ctx.delete_event_time_timer(window.max_timestamp())


class Collect(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, sorted(each[1] for each in elements)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", 1), ("a", 2), ("a", 3), ("b", 4), ("a", 1005)])
        .assign_timestamps_and_watermarks(STRATEGY)
        .key_by(lambda each: each[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .trigger(EverySecondAndAtTheEnd())
        .process(Collect())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
