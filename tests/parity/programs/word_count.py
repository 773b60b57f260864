"""The word count of Flink's tutorial."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

LINES = ["to be or not to be", "that is the question", "whether tis nobler to suffer"]


def split(line):
    yield from line.split()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection(LINES)
        .flat_map(split)
        .map(lambda word: (word, 1), Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0])
        .reduce(lambda left, right: (left[0], left[1] + right[1]))
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
