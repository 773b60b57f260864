"""Payments judged by the limits in force at their time: broadcast state, keyed state, a timer per payment."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from typing import Any

from headwater.common import WatermarkStrategy
from headwater.datastream import DataStream, KeyedBroadcastProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import MapStateDescriptor
from tests.golden.jobs.golden_job import GoldenJob

_random = random.Random(31)
PAYMENTS = [(f"card-{_random.randrange(50)}", number * 1_000, _random.randrange(500)) for number in range(2_000)]
"""(card, time_ms, amount), in order."""
LIMITS = [(f"rule-{_random.randrange(4)}", number * 25_000 + 500, _random.randrange(100, 500)) for number in range(80)]
"""(rule, from_ms, limit), in order."""
STATE = MapStateDescriptor("limits")


class Judge(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = runtime_context.get_map_state(MapStateDescriptor("waiting"))

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        rule, from_ms, limit = value
        versions = ctx.get_broadcast_state(STATE)
        versions.put(rule, [*(versions.get(rule) or []), (from_ms, limit)])

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> None:
        self.waiting.put(value[1], value)
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Any:
        payment = self.waiting.get(timestamp)
        self.waiting.remove(timestamp)
        yield from judged(payment, dict(ctx.get_broadcast_state(STATE).items()))


def judged(payment: Any, limits: dict[str, list[tuple[int, int]]]) -> Any:
    _, time_ms, amount = payment
    for rule, versions in sorted(limits.items()):
        known = bisect_right(versions, (time_ms, 10**9))
        if known and amount > versions[known - 1][1]:
            yield payment, rule, versions[known - 1][1]


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda item, _: item[1])
    payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(strategy)
    limits = env.from_collection(LIMITS).assign_timestamps_and_watermarks(strategy)
    return payments.key_by(lambda payment: payment[0]).connect(limits.broadcast(STATE)).process(Judge())


def expected() -> Counter[Any]:
    limits: dict[str, list[tuple[int, int]]] = {}
    for rule, from_ms, limit in LIMITS:
        limits.setdefault(rule, []).append((from_ms, limit))
    return Counter(result for payment in PAYMENTS for result in judged(payment, limits))


BROADCAST_RULES = GoldenJob("broadcast_rules", build, expected, epoch_records=200)
