"""State with a time to live that is not over yet behaves as state without one."""

from pyflink.common import Time, Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor


class Dedupe(KeyedProcessFunction):
    def open(self, runtime_context):
        ttl = (
            StateTtlConfig.new_builder(Time.hours(1))
            .set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)
            .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
            .cleanup_full_snapshot()
            .build()
        )
        seen = ValueStateDescriptor("seen", Types.BOOLEAN())
        seen.enable_time_to_live(ttl)
        self.seen = runtime_context.get_state(seen)
        history = ListStateDescriptor("history", Types.INT())
        history.enable_time_to_live(ttl)
        self.history = runtime_context.get_list_state(history)
        counts = MapStateDescriptor("counts", Types.INT(), Types.INT())
        counts.enable_time_to_live(ttl)
        self.counts = runtime_context.get_map_state(counts)

    def process_element(self, value, ctx):
        self.history.add(value[1])
        self.counts.put(value[1], (self.counts.get(value[1]) or 0) + 1)
        if not self.seen.value():
            self.seen.update(True)
            yield "first", value
        yield value[0], list(self.history.get()), sorted(self.counts.items())


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", 1), ("a", 1), ("b", 1), ("a", 2), ("b", 3)])
        .key_by(lambda pair: pair[0])
        .process(Dedupe())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
