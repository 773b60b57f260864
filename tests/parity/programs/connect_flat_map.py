"""Two streams through one flat map function."""

from pyflink.datastream import CoFlatMapFunction, StreamExecutionEnvironment


class Spread(CoFlatMapFunction):
    def flat_map1(self, value):
        yield from range(value)

    def flat_map2(self, value):
        yield from value


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([1, 2, 3]).connect(env.from_collection(["ab", ""])).flat_map(Spread())
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
