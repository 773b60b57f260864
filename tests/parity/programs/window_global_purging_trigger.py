"""One window for ever, shown and emptied every three records."""

from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import CountTrigger, GlobalWindows, PurgingTrigger


class Collect(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, sorted(each[1] for each in elements)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", n) for n in range(7)])
        .key_by(lambda each: each[0])
        .window(GlobalWindows.create())
        .trigger(PurgingTrigger.of(CountTrigger.of(3)))
        .process(Collect())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
