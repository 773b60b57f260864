"""A value per key: read, update, clear."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class SumUpToTen(KeyedProcessFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.INT()))

    def process_element(self, value, ctx):
        before = self.total.value()
        after = (before or 0) + value[1]
        if after > 10:
            self.total.clear()
            yield value[0], "over", after
        else:
            self.total.update(after)
            yield value[0], before, after


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", 4), ("b", 9), ("a", 5), ("a", 6), ("b", 9), ("a", 1)])
        .key_by(lambda pair: pair[0])
        .process(SumUpToTen())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
