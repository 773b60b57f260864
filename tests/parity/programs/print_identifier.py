"""print() with an identifier."""

# parity: parallelism 1, because: the partition's number is part of the output

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1, 2], Types.INT()).map(lambda x: x, Types.INT()).print("numbers")
    env.execute()


if __name__ == "__main__":
    main()
