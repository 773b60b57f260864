"""What print() shows of values with a type."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(
        [("a", 1, 1.5, True)], Types.TUPLE([Types.STRING(), Types.INT(), Types.DOUBLE(), Types.BOOLEAN()])
    ).print()
    env.from_collection(["text"], Types.STRING()).print()
    env.from_collection([7], Types.INT()).print()
    env.from_collection(
        [([1, 2], {"k": 1})], Types.TUPLE([Types.LIST(Types.INT()), Types.MAP(Types.STRING(), Types.INT())])
    ).print()
    env.from_collection([(1.0, 1e10, 1e-5, 123456789.125)], Types.TUPLE([Types.DOUBLE()] * 4)).print()
    env.execute()


if __name__ == "__main__":
    main()
