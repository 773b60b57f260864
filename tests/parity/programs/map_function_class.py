"""A map function with open, close and state of its own."""

from pyflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment


class Shift(MapFunction):
    def __init__(self, by):
        self.by = by
        self.factor = None

    def open(self, runtime_context: RuntimeContext):
        self.factor = 10

    def map(self, value):
        return value * self.factor + self.by


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([1, 2, 3]).map(Shift(7))
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
