"""Running sums of one field per key."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

TYPE = Types.TUPLE([Types.STRING(), Types.INT()])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", 1), ("b", 5), ("a", 2), ("a", 3), ("b", -1)], TYPE)
        .key_by(lambda pair: pair[0])
        .sum(1)
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
