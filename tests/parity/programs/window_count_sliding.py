"""The last four records, every two."""

from pyflink.datastream import StreamExecutionEnvironment, WindowFunction


class Collect(WindowFunction):
    def apply(self, key, window, inputs):
        yield key, [each[1] for each in inputs]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", n) for n in range(7)] + [("b", n) for n in range(3)])
        .key_by(lambda each: each[0])
        .count_window(4, 2)
        .apply(Collect())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
