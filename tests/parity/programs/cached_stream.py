"""A stream that two jobs read."""

from pyflink.common import Types
from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    cached = env.from_collection([1, 2, 3], Types.INT()).map(lambda number: number * 10, Types.INT()).cache()
    cached.print()
    env.execute()
    cached.map(lambda number: number + 1, Types.INT()).print()
    env.execute()
    cached.invalidate()


if __name__ == "__main__":
    main()
