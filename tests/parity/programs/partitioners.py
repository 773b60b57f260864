"""Every way to spread records that sends each to one partition."""

from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_collection(list(range(10)))
    results = (
        numbers.rebalance()
        .map(lambda x: x + 1)
        .shuffle()
        .map(lambda x: x * 2)
        .rescale()
        .map(lambda x: x)
        .forward()
        .map(lambda x: x - 1)
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
