"""Several functions one after another, with names."""

from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection(list(range(12)))
        .map(lambda x: x + 1)
        .name("add")
        .filter(lambda x: x % 3 == 0)
        .map(str)
        .name("text")
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
