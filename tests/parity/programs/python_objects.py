"""Records without a type: any Python object."""

from pyflink.datastream import StreamExecutionEnvironment


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __repr__(self):
        return f"Point({self.x}, {self.y})"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([{"a": 1}, [1, 2], {3}, None, "text"])
        .filter(lambda x: x is not None)
        .map(lambda x: (type(x).__name__, x))
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
