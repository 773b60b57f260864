"""BATCH mode gives only final results."""

from pyflink.common import Types
from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

TYPE = Types.TUPLE([Types.STRING(), Types.INT()])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    results = (
        env.from_collection([("a", 1), ("b", 5), ("a", 2), ("a", 3), ("b", -1)], TYPE)
        .key_by(lambda pair: pair[0])
        .reduce(lambda left, right: (left[0], left[1] + right[1]))
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
