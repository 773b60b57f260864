"""A join with state: each side waits for the other."""

from pyflink.common import Types
from pyflink.datastream import KeyedCoProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor


class Join(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.left = runtime_context.get_list_state(ListStateDescriptor("left", Types.STRING()))
        self.right = runtime_context.get_list_state(ListStateDescriptor("right", Types.STRING()))

    def process_element1(self, value, ctx):
        self.left.add(value[1])
        for other in self.right.get():
            yield ctx.get_current_key(), value[1], other

    def process_element2(self, value, ctx):
        self.right.add(value[1])
        for other in self.left.get():
            yield ctx.get_current_key(), other, value[1]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    left = env.from_collection([("a", "l1"), ("b", "l2"), ("a", "l3"), ("d", "l4")])
    right = env.from_collection([("a", "r1"), ("a", "r2"), ("b", "r3"), ("c", "r4")])
    results = left.connect(right).key_by(lambda pair: pair[0], lambda pair: pair[0]).process(Join())
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
