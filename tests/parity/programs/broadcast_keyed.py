"""Rules reach every key; records wait for event time, so that the order of arrival does not matter."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedBroadcastProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Check(KeyedBroadcastProcessFunction):
    def open(self, runtime_context):
        self.amounts = runtime_context.get_list_state(ListStateDescriptor("amounts", Types.INT()))

    def process_element(self, value, ctx):
        self.amounts.add(value[2])
        ctx.timer_service().register_event_time_timer(1000)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value[0], value[2])

    def on_timer(self, timestamp, ctx):
        rules = ctx.get_broadcast_state(RULES)
        limit = rules.get("limit")
        for amount in sorted(self.amounts.get()):
            yield ctx.get_current_key(), amount, amount > limit, rules.contains("other")


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    payments = env.from_collection([("a", 1, 5), ("b", 2, 50), ("a", 3, 70)]).assign_timestamps_and_watermarks(STRATEGY)
    rules = (
        env.from_collection([("limit", 1, 10), ("limit", 2, 60)])
        .assign_timestamps_and_watermarks(STRATEGY)
        .broadcast(RULES)
    )
    results = payments.key_by(lambda each: each[0]).connect(rules).process(Check())
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
