"""Two streams of different types through one map function."""

from pyflink.datastream import CoMapFunction, StreamExecutionEnvironment


class Text(CoMapFunction):
    def map1(self, value):
        return f"number {value}"

    def map2(self, value):
        return f"word {value}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([1, 2, 3]).connect(env.from_collection(["a", "b"])).map(Text())
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
