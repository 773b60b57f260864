"""A co map function on keyed streams, with state that both inputs share."""

from pyflink.common import Types
from pyflink.datastream import CoFlatMapFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ReducingStateDescriptor, ValueStateDescriptor


class Complete(CoFlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        total = ReducingStateDescriptor("total", lambda left, right: left + right, Types.INT())
        self.total = runtime_context.get_reducing_state(total)
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def flat_map1(self, value):
        yield from self.take(value)

    def flat_map2(self, value):
        yield from self.take((value[0], -value[1]))

    def take(self, value):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.total.add(value[1])
        if count == 3:  # the last of the key, in whatever order they came
            yield value[0], self.total.get()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    gains = env.from_collection([("a", 5), ("b", 7), ("a", 1)])
    losses = env.from_collection([("a", 2), ("b", 3), ("b", 1)])
    results = gains.connect(losses).key_by(lambda pair: pair[0], lambda pair: pair[0]).flat_map(Complete())
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
