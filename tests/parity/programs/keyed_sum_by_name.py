"""Running sums of a named field of rows."""

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

TYPE = Types.ROW_NAMED(["city", "rain"], [Types.STRING(), Types.INT()])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([Row("bern", 1), Row("ulm", 2), Row("bern", 3)], TYPE)
        .key_by(lambda row: row["city"])
        .sum("rain")
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
