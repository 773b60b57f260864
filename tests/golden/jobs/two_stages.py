"""Minutes per user, then minutes over all users: two key_by in a row, the second fed by timers of the first."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from headwater.common import WatermarkStrategy
from headwater.datastream import (
    AggregateFunction,
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from headwater.datastream.state import AggregatingStateDescriptor, ReducingStateDescriptor
from tests.golden.jobs.golden_job import GoldenJob

MINUTE_MS = 60_000

_random = random.Random(7)
SPENT = [(f"user-{_random.randrange(50)}", number * 500, _random.randrange(100)) for number in range(1_500)]
"""(user, time_ms, amount), in order."""


class UserMinutes(KeyedProcessFunction):
    """Keyed by (user, minute): one sum per key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_reducing_state(ReducingStateDescriptor("total", lambda a, b: a + b))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        self.total.add(value[2])
        ctx.timer_service().register_event_time_timer((value[1] // MINUTE_MS + 1) * MINUTE_MS - 1)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        user, minute = ctx.get_current_key()
        yield minute, user, self.total.get()
        self.total.clear()


class UsersAndSum(AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, 0, "")

    def add(self, value: Any, accumulator: Any) -> Any:
        users, total, first = accumulator
        return users + 1, total + value[1], min(first or value[0], value[0])

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise NotImplementedError


class Minutes(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.all = runtime_context.get_aggregating_state(AggregatingStateDescriptor("all", UsersAndSum()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        minute, user, total = value
        self.all.add((user, total))
        assert ctx.timestamp() == (minute + 1) * MINUTE_MS - 1  # that of the timer it comes from
        ctx.timer_service().register_event_time_timer(ctx.timestamp())  # type: ignore[arg-type]

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield ctx.get_current_key(), *self.all.get()  # type: ignore[misc]
        self.all.clear()


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda item, _: item[1])
    spent = env.from_collection(SPENT).assign_timestamps_and_watermarks(strategy)
    per_user = spent.key_by(lambda item: (item[0], item[1] // MINUTE_MS)).process(UserMinutes())
    return per_user.key_by(lambda item: item[0]).process(Minutes())


def expected() -> Counter[Any]:
    minutes: dict[int, Counter[str]] = {}
    for user, time_ms, amount in SPENT:
        minutes.setdefault(time_ms // MINUTE_MS, Counter())[user] += amount
    return Counter((minute, len(users), sum(users.values()), min(users)) for minute, users in minutes.items())


TWO_STAGES = GoldenJob("two_stages", build, expected, epoch_records=150)
