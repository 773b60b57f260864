"""Numeric types keep their values."""

from decimal import Decimal

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

TYPE = Types.TUPLE([Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG(), Types.DOUBLE(), Types.BIG_DEC()])
DATA = [(1, 2, 3, 2**40, 0.5, Decimal("1.25")), (-1, -2, -3, -(2**40), -1e300, Decimal("-7.5"))]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection(DATA, TYPE).map(lambda value: value, TYPE)
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
