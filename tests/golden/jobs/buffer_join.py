"""Orders joined with their payments, in whichever order they come: ListState as buffer, timers for the unpaid."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from headwater.common import WatermarkStrategy
from headwater.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import ListStateDescriptor, ValueStateDescriptor
from tests.golden.jobs.golden_job import GoldenJob

MINUTE_MS = 60_000
PATIENCE_MS = 30 * MINUTE_MS

_random = random.Random(9)
ORDERS = [("order", number, number * 20_000, _random.randrange(10, 99)) for number in range(1_000)]
"""(kind, order id, time_ms, amount), in order."""
PAYMENTS = sorted(
    (
        ("payment", number, time_ms + _random.randrange(1, 10 * MINUTE_MS), part)
        for _, number, time_ms, amount in ORDERS
        if _random.random() < 0.8
        for part in (amount - 5, 5)
    ),
    key=lambda payment: payment[2],
)
"""Two for most orders, up to ten minutes later."""


class Join(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.order = runtime_context.get_state(ValueStateDescriptor("order"))
        self.early = runtime_context.get_list_state(ListStateDescriptor("early payments"))
        self.paid = runtime_context.get_state(ValueStateDescriptor("paid"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        kind, number, time_ms, amount = value
        if kind == "order":
            self.order.update(amount)
            ctx.timer_service().register_event_time_timer(time_ms + PATIENCE_MS)
            for part in self.early.get():
                yield self.match(number, amount, part)
            self.early.clear()
        elif self.order.value() is None:
            self.early.add(amount)
        else:
            yield self.match(number, self.order.value(), amount)

    def match(self, number: int, amount: int, part: int) -> Any:
        self.paid.update((self.paid.value() or 0) + part)
        return "match", number, amount, part

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        if self.paid.value() != self.order.value():
            yield "unpaid", ctx.get_current_key(), self.order.value(), self.paid.value()
        self.order.clear()
        self.paid.clear()


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda item, _: item[2])
    orders = env.from_collection(ORDERS).assign_timestamps_and_watermarks(strategy)
    payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(strategy)
    return orders.union(payments).key_by(lambda item: item[1]).process(Join())


def expected() -> Counter[Any]:
    amounts = {number: amount for _, number, _, amount in ORDERS}
    paid = {number for _, number, _, _ in PAYMENTS}
    result: Counter[Any] = Counter(("match", number, amounts[number], part) for _, number, _, part in PAYMENTS)
    result.update(("unpaid", number, amount, None) for number, amount in amounts.items() if number not in paid)
    return result


BUFFER_JOIN = GoldenJob("buffer_join", build, expected, epoch_records=300)
