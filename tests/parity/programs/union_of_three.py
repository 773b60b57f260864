"""Three streams as one."""

from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    first = env.from_collection([1, 2])
    second = env.from_collection([2, 3])
    third = env.from_collection([9])
    results = first.union(second, third).map(lambda x: x * 10)
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
