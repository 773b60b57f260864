"""Side outputs of a process function."""

from pyflink.common import Types
from pyflink.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

EVEN = OutputTag("even", Types.INT())
LARGE = OutputTag("large", Types.STRING())


class Sort(ProcessFunction):
    def process_element(self, value, ctx):
        if value % 2 == 0:
            yield EVEN, value
        if value > 7:
            yield LARGE, f"large {value}"
        yield value


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    main = env.from_collection(list(range(10)), Types.INT()).process(Sort(), Types.INT())
    texts = main.map(lambda x: f"main {x}", Types.STRING())
    results = texts.union(
        main.get_side_output(EVEN).map(lambda x: f"even {x}", Types.STRING()), main.get_side_output(LARGE)
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
