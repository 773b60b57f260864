"""A lambda on numbers."""

from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([1, 2, 3, 4, 5]).map(lambda x: x * x)
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
