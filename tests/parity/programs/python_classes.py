"""Records of a class that the program defines."""

from pyflink.datastream import StreamExecutionEnvironment


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([1, 2, 3])
        .map(lambda x: Point(x, x * x))
        .key_by(lambda point: point.x % 2)
        .map(lambda point: (point.x, point.y))
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
