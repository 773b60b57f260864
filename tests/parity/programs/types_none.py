"""None as a field of a row."""

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

TYPE = Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.INT()])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([Row(None, 1), Row("x", None)], TYPE).map(
        lambda row: Row(row.b, row.a), Types.ROW([Types.INT(), Types.STRING()])
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
