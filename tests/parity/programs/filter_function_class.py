"""A filter function."""

from pyflink.datastream import FilterFunction, StreamExecutionEnvironment


class Longer(FilterFunction):
    def filter(self, value):
        return len(value) > 3


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection(["a", "abcd", "abc", "abcde"]).filter(Longer())
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
