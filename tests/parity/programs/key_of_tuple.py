"""A tuple as key."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

DATA = [("a", 1, 10), ("a", 2, 20), ("a", 1, 30), ("b", 1, 40)]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection(DATA)
        .key_by(lambda each: (each[0], each[1]), Types.TUPLE([Types.STRING(), Types.INT()]))
        .reduce(lambda left, right: (left[0], left[1], left[2] + right[2]))
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
