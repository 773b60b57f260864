"""Fields of tuples, in another order."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

TYPE = Types.TUPLE([Types.STRING(), Types.INT(), Types.DOUBLE()])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([("a", 1, 0.5), ("b", 2, 1.5)], TYPE).project(2, 0)
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
