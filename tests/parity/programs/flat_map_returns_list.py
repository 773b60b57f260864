"""A flat map that returns a list, sometimes an empty one."""

from pyflink.datastream import StreamExecutionEnvironment


def divisors(number):
    if number < 2:
        return []
    return [each for each in range(2, number) if number % each == 0]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([1, 6, 7, 12]).flat_map(divisors)
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
