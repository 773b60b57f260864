"""Every record to every partition."""

# parity: parallelism 1, because: a record per partition

from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([1, 2, 3]).broadcast().map(lambda x: x)
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
