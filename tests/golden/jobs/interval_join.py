"""Orders and their payments by an interval join, full outer; and the payments looked up by asynchronous requests."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

from headwater.common import Time, WatermarkStrategy
from headwater.datastream import AsyncDataStream, AsyncFunction, DataStream, StreamExecutionEnvironment
from tests.golden.jobs.golden_job import GoldenJob

WITHIN_MS = 90_000

_random = random.Random(17)
ORDERS = [(_random.randrange(40), number * 3_000, number) for number in range(900)]
"""(customer, time_ms, number), in order."""
PAYMENTS = sorted(
    ((_random.randrange(45), _random.randrange(900 * 3_000), number) for number in range(1_000)),
    key=lambda payment: payment[1],
)


class Rate(AsyncFunction):
    """What a service would say about a customer."""

    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(0)
        return [(*value, rate(value[0]))]


def rate(customer: int) -> int:
    return customer % 7


def joined(left: Any, right: Any, ctx: Any) -> Any:
    yield left, right


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda item, _: item[1])
    orders = env.from_collection(ORDERS).assign_timestamps_and_watermarks(strategy)
    payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(strategy)
    rated = AsyncDataStream.unordered_wait(payments, Rate(), Time.minutes(5), capacity=10)
    return (
        orders.key_by(lambda order: order[0])
        .interval_join(rated.key_by(lambda payment: payment[0]))
        .between(Time.seconds(-5), Time.milliseconds(WITHIN_MS))
        .full_outer()
        .process(joined)
    )


def expected() -> Counter[Any]:
    rated = [(*payment, rate(payment[0])) for payment in PAYMENTS]
    pairs = [
        (order, payment)
        for order in ORDERS
        for payment in rated
        if order[0] == payment[0] and order[1] - 5_000 <= payment[1] <= order[1] + WITHIN_MS
    ]
    result: Counter[Any] = Counter(pairs)
    with_payment, with_order = {order for order, _ in pairs}, {payment for _, payment in pairs}
    result.update((order, None) for order in ORDERS if order not in with_payment)
    result.update((None, payment) for payment in rated if payment not in with_order)
    return result


INTERVAL_JOIN = GoldenJob("interval_join", build, expected, epoch_records=120)
