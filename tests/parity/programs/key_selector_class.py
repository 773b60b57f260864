"""A key selector object, and a key with a type."""

from pyflink.common import Types
from pyflink.datastream import KeySelector, StreamExecutionEnvironment


class Parity(KeySelector):
    def get_key(self, value):
        return value % 2


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection(list(range(8)), Types.INT())
        .key_by(Parity(), Types.INT())
        .reduce(lambda left, right: left + right)
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
