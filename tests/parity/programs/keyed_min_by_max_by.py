"""Whole records with the least and the greatest field."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

TYPE = Types.TUPLE([Types.STRING(), Types.INT(), Types.STRING()])
DATA = [("a", 3, "x"), ("a", 1, "y"), ("b", 2, "z"), ("a", 2, "w"), ("b", 9, "v"), ("a", 7, "u")]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    keyed = env.from_collection(DATA, TYPE).key_by(lambda each: each[0])
    results = keyed.min_by(1).union(keyed.max_by(1))
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
