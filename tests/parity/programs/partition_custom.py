"""A partitioner of the program's own."""

from pyflink.common import Types
from pyflink.datastream import Partitioner, StreamExecutionEnvironment


class ByFirstLetter(Partitioner):
    def partition(self, key, num_partitions):
        return ord(key) % num_partitions


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    (
        env.from_collection([("a", 1), ("b", 2), ("c", 3)], Types.TUPLE([Types.STRING(), Types.INT()]))
        .partition_custom(ByFirstLetter(), lambda pair: pair[0])
        .map(lambda pair: f"{pair[0]} {pair[1]}", Types.STRING())
        .print()
    )
    env.execute()


if __name__ == "__main__":
    main()
