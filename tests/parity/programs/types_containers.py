"""Lists, maps, arrays and tuples in each other."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

TYPE = Types.TUPLE(
    [
        Types.LIST(Types.INT()),
        Types.MAP(Types.STRING(), Types.LIST(Types.INT())),
        Types.BASIC_ARRAY(Types.STRING()),
        Types.TUPLE([Types.BOOLEAN(), Types.STRING()]),
    ]
)
DATA = [([1, 2], {"a": [1], "b": []}, ["x", "y"], (True, "t")), ([], {}, [], (False, ""))]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection(DATA, TYPE).map(lambda value: (value[0], value[1], list(value[2]), value[3]), TYPE)
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
