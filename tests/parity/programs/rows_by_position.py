"""Rows without names, fields by position."""

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([Row("a", 1), Row("b", 2)], Types.ROW([Types.STRING(), Types.INT()])).map(
        lambda row: Row(row[1], row[0], len(row)), Types.ROW([Types.INT(), Types.STRING(), Types.INT()])
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
