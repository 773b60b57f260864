"""A map with a declared type: numbers become text."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([1, 2, 3], Types.INT()).map(lambda x: f"<{x}>", Types.STRING())
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
