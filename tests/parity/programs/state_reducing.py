"""A value per key that is reduced as values are added."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ReducingStateDescriptor


class Longest(KeyedProcessFunction):
    def open(self, runtime_context):
        longer = lambda left, right: left if len(left) >= len(right) else right  # noqa: E731
        self.longest = runtime_context.get_reducing_state(ReducingStateDescriptor("longest", longer, Types.STRING()))

    def process_element(self, value, ctx):
        before = self.longest.get()
        self.longest.add(value[1])
        yield value[0], before, self.longest.get()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", "x"), ("a", "xyz"), ("b", "q"), ("a", "xy")])
        .key_by(lambda pair: pair[0])
        .process(Longest())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
