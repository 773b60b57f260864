"""A list per key: add, add_all, get, update, clear."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor


class LastThree(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_list_state(ListStateDescriptor("last", Types.INT()))

    def process_element(self, value, ctx):
        if value[1] < 0:
            self.last.clear()
        elif value[1] > 100:
            self.last.add_all([value[1], value[1] + 1])
        else:
            self.last.add(value[1])
        items = list(self.last.get())
        if len(items) > 3:
            items = items[-3:]
            self.last.update(items)
        yield value[0], items


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", 1), ("a", 2), ("b", 7), ("a", 3), ("a", 4), ("a", -1), ("a", 200), ("b", 8)])
        .key_by(lambda pair: pair[0])
        .process(LastThree())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
