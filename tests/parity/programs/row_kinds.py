"""The kind of a row travels with it."""

from pyflink.common import Row, RowKind, Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    kinds = [RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE]
    rows = []
    for index, kind in enumerate(kinds):
        row = Row("a", index)
        row.set_row_kind(kind)
        rows.append(row)
    results = env.from_collection(rows, Types.ROW([Types.STRING(), Types.INT()])).map(
        lambda row: (str(row.get_row_kind()), row[1])
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
