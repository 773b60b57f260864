"""Word count: how often each word was seen so far, one line per change.

python examples/word_count.py
"""

from headwater.common import Types
from headwater.datastream import StreamExecutionEnvironment

VERSES = [
    "the river begins where the rain ends",
    "the rain begins where the river ends",
    "and all the water comes back",
]


def split(line):
    yield from line.split()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)  # one partition, so one order of lines

    counts = (
        env.from_collection(VERSES, type_info=Types.STRING())
        .flat_map(split, output_type=Types.STRING())
        .map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    counts.print()

    env.execute("word count")


if __name__ == "__main__":
    main()
