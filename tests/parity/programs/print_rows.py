"""What print() shows of rows with a type."""

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([Row("b", 2)], Types.ROW([Types.STRING(), Types.INT()])).print()
    env.from_collection([Row("c", 3)], Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.INT()])).print()
    env.from_collection([Row("d", None)], Types.ROW([Types.STRING(), Types.INT()])).print()
    env.execute()


if __name__ == "__main__":
    main()
