"""Keys that a program could change: lists, dicts, sets, bytearrays, rows and tuples that hold them."""

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

DATA = [("a", 1), ("b", 2), ("a", 1), ("a", 2), ("b", 2)]


class Count(KeyedProcessFunction):
    def __init__(self, name, selector):
        self.name = name
        self.selector = selector

    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        key = ctx.get_current_key()
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        shown = key if isinstance(key, (list, dict, tuple, Row)) else sorted(key)
        yield f"{self.name} {shown} {count} {key == self.selector(value)}"


def main():
    selectors = {
        "list": lambda each: [each[0], each[1]],
        "list of lists": lambda each: [[each[0]], [each[1]]],
        "tuple of list": lambda each: (each[0], [each[1]]),
        "dict": lambda each: {"word": each[0], "numbers": [each[1]]},
        "set": lambda each: {each[1]},
        "bytearray": lambda each: bytearray(each[0].encode()),
        "row": lambda each: Row(each[0], [each[1]]),
    }
    env = StreamExecutionEnvironment.get_execution_environment()
    data = env.from_collection(DATA)
    counts = [
        data.key_by(selector).process(Count(name, selector), Types.STRING()) for name, selector in selectors.items()
    ]
    with counts[0].union(*counts[1:]).execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
