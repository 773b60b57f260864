"""Each id once, and again when it comes back hours later: ValueState with event-time TTL."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from headwater.common import Time, WatermarkStrategy
from headwater.datastream import DataStream, FilterFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import StateTtlConfig, ValueStateDescriptor
from tests.golden.jobs.golden_job import GoldenJob

HOUR_MS = 3_600_000
STEP_MS = 10_000
SOON, LATER = 3, 1_080
"""After so many records an id comes again: 30 s, which is a duplicate, and three hours, long after its TTL."""

_random = random.Random(5)


def _events() -> list[tuple[str, int]]:
    planned: dict[int, str] = {}
    events = []
    for number in range(2_000):
        event_id = planned.pop(number, None) or f"event-{number}"
        events.append((event_id, number * STEP_MS))
        if event_id == f"event-{number}":
            if _random.random() < 0.3:
                planned[number + SOON] = event_id
            elif _random.random() < 0.3:
                planned[number + LATER] = event_id
    return events


EVENTS = _events()


class NotSeen(FilterFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        seen = ValueStateDescriptor("seen")
        # An epoch is 28 minutes of event time, and the watermark may lag by one: far from both distances.
        seen.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).use_event_time().build())
        self.seen = runtime_context.get_state(seen)

    def filter(self, value: Any) -> bool:
        if self.seen.value():
            return False
        self.seen.update(True)
        return True


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event[1])
    events = env.from_collection(EVENTS).assign_timestamps_and_watermarks(strategy)
    return events.key_by(lambda event: event[0]).filter(NotSeen())


def expected() -> Counter[Any]:
    seen_ms: dict[str, int] = {}
    result: Counter[Any] = Counter()
    for event_id, time_ms in EVENTS:
        if event_id not in seen_ms or time_ms - seen_ms[event_id] > HOUR_MS:
            seen_ms[event_id] = time_ms
            result[event_id, time_ms] += 1
    return result


DEDUPE_WITH_TTL = GoldenJob("dedupe_with_ttl", build, expected, epoch_records=170)
