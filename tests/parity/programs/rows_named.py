"""Rows with field names, typed."""

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

TYPE = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([Row("ann", 30), Row("bob", 4)], TYPE).map(
        lambda row: Row(name=row.name.upper(), age=row["age"] + 1), TYPE
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
