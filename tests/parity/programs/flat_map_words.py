"""Words of lines, from a generator."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def words(line):
    yield from line.split()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection(["to be or", "not to be", ""], Types.STRING()).flat_map(words, Types.STRING())
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
