"""What print() shows of records without a type."""

from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1, "a", 1.5, True, (1, "b"), [1, 2], {"k": 1}, None]).print()
    env.execute()


if __name__ == "__main__":
    main()
