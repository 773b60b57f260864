"""A flat map function that gives none, one or many."""

from pyflink.datastream import FlatMapFunction, StreamExecutionEnvironment


class Repeat(FlatMapFunction):
    def flat_map(self, value):
        for index in range(value):
            yield value, index


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([0, 1, 3]).flat_map(Repeat())
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
