"""State in map, flat_map and filter functions on a keyed stream."""

from pyflink.common import Types
from pyflink.datastream import FilterFunction, FlatMapFunction, MapFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class Numbered(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def map(self, value):
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        return *value, number


class First(FilterFunction):
    def open(self, runtime_context: RuntimeContext):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

    def filter(self, value):
        if self.seen.value():
            return False
        self.seen.update(True)
        return True


class Changes(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.INT()))

    def flat_map(self, value):
        last = self.last.value()
        self.last.update(value[1])
        if last is not None and last != value[1]:
            yield value[0], last, value[1]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    keyed = env.from_collection([("a", 1), ("a", 1), ("b", 2), ("a", 3), ("b", 2)]).key_by(lambda pair: pair[0])
    results = keyed.map(Numbered()).union(keyed.filter(First()), keyed.flat_map(Changes()))
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
