"""Asynchronous requests, results as they come."""

import asyncio

from pyflink.common import Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment


class Lookup(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0.001 * (5 - value))
        return [] if value == 2 else [f"{value}"]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = AsyncDataStream.unordered_wait(
        env.from_collection([1, 2, 3, 4], Types.INT()), Lookup(), Time.seconds(10), 3, Types.STRING()
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
