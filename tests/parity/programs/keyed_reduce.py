"""A reduce function with a running result."""

from pyflink.datastream import ReduceFunction, StreamExecutionEnvironment


class Join(ReduceFunction):
    def reduce(self, value1, value2):
        return value1[0], value1[1] + value2[1]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", "1"), ("b", "2"), ("a", "3"), ("a", "4")])
        .key_by(lambda pair: pair[0])
        .reduce(Join())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
