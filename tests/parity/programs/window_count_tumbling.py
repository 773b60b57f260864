"""Windows of three records; what is left over is never shown."""

from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", n) for n in range(7)] + [("b", n) for n in range(3)])
        .key_by(lambda each: each[0])
        .count_window(3)
        .reduce(lambda left, right: (left[0], left[1] + right[1]))
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
