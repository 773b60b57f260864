"""Dates and times reach functions as they are."""

from datetime import date, datetime, time

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

TYPE = Types.TUPLE([Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP()])
DATA = [(date(2024, 2, 29), time(12, 30, 15), datetime(2024, 2, 29, 12, 30, 15, 123000))]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection(DATA, TYPE).map(lambda value: [str(each) for each in value])
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
