"""Two sources in one union, side outputs, and a union of streams of different depth: a final balance per account."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from headwater.datastream import (
    DataStream,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from headwater.datastream.state import ValueStateDescriptor
from tests.golden.jobs.golden_job import GoldenJob

LARGE = 900
END_MS = 10**15
"""Event time gets there with the end of the input only."""

_random = random.Random(8)
PAYMENTS = [(_random.randrange(60), _random.randrange(1_000)) for _ in range(1_200)]
REFUNDS = [(_random.randrange(60), -_random.randrange(100)) for _ in range(500)]

LARGE_ONES = OutputTag("large")
NEGATIVE = OutputTag("negative")


class Watch(ProcessFunction):
    """Everything goes on; what is large goes to a side output too."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value
        if value[1] > LARGE:
            yield LARGE_ONES, ("large", *value)


class Balance(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.cents = runtime_context.get_state(ValueStateDescriptor("cents"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        self.cents.update((self.cents.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(END_MS)
        if value[1] < 0:
            yield NEGATIVE, ("negative", *value)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield "balance", ctx.get_current_key(), self.cents.value()


def build(env: StreamExecutionEnvironment) -> DataStream:
    booked = env.from_collection(PAYMENTS).union(env.from_collection(REFUNDS))
    watched = booked.process(Watch())
    balances = watched.key_by(lambda item: item[0]).process(Balance())
    return balances.union(watched.get_side_output(LARGE_ONES), balances.get_side_output(NEGATIVE))


def expected() -> Counter[Any]:
    balances: Counter[int] = Counter()
    result: Counter[Any] = Counter()
    for account, cents in PAYMENTS + REFUNDS:
        balances[account] += cents
        if cents > LARGE:
            result["large", account, cents] += 1
        if cents < 0:
            result["negative", account, cents] += 1
    result.update(("balance", account, cents) for account, cents in balances.items())
    return result


UNION_AND_SIDE_OUTPUTS = GoldenJob("union_and_side_outputs", build, expected, epoch_records=200)
