"""Two streams through one process function."""

from pyflink.datastream import CoProcessFunction, StreamExecutionEnvironment


class Tag(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield "left", value

    def process_element2(self, value, ctx):
        yield "right", value
        yield "right again", value


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([1, 2, 3]).connect(env.from_collection(["a", "b"])).process(Tag())
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
