"""A map per key: all its methods."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import MapStateDescriptor


class Inventory(KeyedProcessFunction):
    def open(self, runtime_context):
        self.stock = runtime_context.get_map_state(MapStateDescriptor("stock", Types.STRING(), Types.INT()))

    def process_element(self, value, ctx):
        shop, item, change = value
        if item == "*":
            self.stock.clear()
        elif item == "+":
            self.stock.put_all({"pear": change, "plum": change}.items())
        elif change == 0:
            self.stock.remove(item)
        else:
            known = self.stock.get(item) if self.stock.contains(item) else 0
            self.stock.put(item, known + change)
        yield (
            shop,
            self.stock.is_empty(),
            sorted(self.stock.keys()),
            sorted(self.stock.values()),
            sorted(self.stock.items()),
        )


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    DATA = [
        ("x", "pear", 2),
        ("y", "fig", 1),
        ("x", "pear", 3),
        ("x", "fig", 1),
        ("x", "fig", 0),
        ("x", "*", 0),
        ("x", "+", 5),
        ("y", "fig", 0),
    ]
    results = env.from_collection(DATA).key_by(lambda each: each[0]).process(Inventory())
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
