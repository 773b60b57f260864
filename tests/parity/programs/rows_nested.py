"""A row in a row, and lists and maps in rows."""

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

INNER = Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.INT()])
OUTER = Types.ROW_NAMED(
    ["id", "at", "tags", "scores"],
    [Types.INT(), INNER, Types.LIST(Types.STRING()), Types.MAP(Types.STRING(), Types.INT())],
)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([Row(1, Row(1, 2), ["a", "b"], {"k": 5}), Row(2, Row(3, 4), [], {})], OUTER).map(
        lambda row: Row(row.id, row.at.x + row.at.y, row.tags, row.scores),
        Types.ROW([Types.INT(), Types.INT(), Types.LIST(Types.STRING()), Types.MAP(Types.STRING(), Types.INT())]),
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
