"""A small payment and within a minute a large one with the same card: ValueState, timers that are deleted."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from headwater.common import WatermarkStrategy
from headwater.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import ValueStateDescriptor
from tests.golden.jobs.golden_job import GoldenJob

MINUTE_MS = 60_000
SMALL, LARGE = 100, 50_000

_random = random.Random(3)
PAYMENTS = [
    (f"card-{_random.randrange(40)}", number * 900, _random.choice([_random.randrange(200), _random.randrange(90_000)]))
    for number in range(1_400)
]
"""(card, time_ms, cents), in order."""


class FraudDetector(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.flag = runtime_context.get_state(ValueStateDescriptor("time of the small payment"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        card, time_ms, cents = value
        flagged_ms = self.flag.value()
        if flagged_ms is not None:
            # Event time may not have reached the timer yet, although this payment has.
            if time_ms >= flagged_ms + MINUTE_MS:
                yield "forgotten", card, flagged_ms
            elif cents > LARGE:
                yield "alert", card, time_ms
            ctx.timer_service().delete_event_time_timer(flagged_ms + MINUTE_MS)
            self.flag.clear()
        if cents < SMALL:
            self.flag.update(time_ms)
            ctx.timer_service().register_event_time_timer(time_ms + MINUTE_MS)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield "forgotten", ctx.get_current_key(), timestamp - MINUTE_MS
        self.flag.clear()


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda payment, _: payment[1])
    payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(strategy)
    return payments.key_by(lambda payment: payment[0]).process(FraudDetector())


def expected() -> Counter[Any]:
    result: Counter[Any] = Counter()
    flags: dict[str, int] = {}
    for card, time_ms, cents in PAYMENTS:
        flagged_ms = flags.pop(card, None)
        if flagged_ms is not None:
            if time_ms >= flagged_ms + MINUTE_MS:
                result["forgotten", card, flagged_ms] += 1
            elif cents > LARGE:
                result["alert", card, time_ms] += 1
        if cents < SMALL:
            flags[card] = time_ms
    result.update(("forgotten", card, flagged_ms) for card, flagged_ms in flags.items())
    return result


FRAUD_ALERT = GoldenJob("fraud_alert", build, expected, epoch_records=140)
