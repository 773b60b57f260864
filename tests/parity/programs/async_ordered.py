"""Asynchronous requests, results in the order of the requests."""

import asyncio

from pyflink.common import Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment


class Lookup(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0.001 * (5 - value))
        return [value, value * 10]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = AsyncDataStream.ordered_wait(
        env.from_collection([1, 2, 3, 4], Types.INT()), Lookup(), Time.seconds(10), 2, Types.INT()
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
