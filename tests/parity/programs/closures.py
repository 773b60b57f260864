"""Functions that use variables of the program."""

from pyflink.datastream import StreamExecutionEnvironment

LIMITS = {"low": 3, "high": 8}


def within(value):
    return LIMITS["low"] <= value <= LIMITS["high"]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection(list(range(12))).filter(within).map(lambda x: (x, LIMITS["high"] - x))
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
