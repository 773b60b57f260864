"""A value of any Python type per key."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class History(KeyedProcessFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        seen = self.seen.value() or {"first": value[1], "all": ()}
        seen = {"first": seen["first"], "all": (*seen["all"], value[1])}
        self.seen.update(seen)
        yield value[0], seen["first"], seen["all"]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", 4), ("b", 9), ("a", 5), ("a", 6)]).key_by(lambda pair: pair[0]).process(History())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
