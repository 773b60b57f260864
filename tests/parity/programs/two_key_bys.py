"""Counts per word, then how many words have each count."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        seen = (self.count.value() or 0) + 1
        self.count.update(seen)
        yield ctx.get_current_key(), seen


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection(["a", "b", "a", "c", "b", "a"])
        .key_by(lambda word: word)
        .process(Count())
        .key_by(lambda pair: pair[1])
        .process(Count())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
