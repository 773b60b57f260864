"""Without timestamps there are none."""

from pyflink.datastream import ProcessFunction, StreamExecutionEnvironment


class Stamp(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([1, 2]).process(Stamp())
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
