"""Calls and their answers as connected streams: a co-process function, a timer per call that its answer deletes."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from headwater.common import WatermarkStrategy
from headwater.datastream import DataStream, KeyedCoProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import ListStateDescriptor, ValueStateDescriptor
from tests.golden.jobs.golden_job import GoldenJob

PATIENCE_MS = 60_000

_random = random.Random(53)
CALLS = [(number, number * 2_000) for number in range(1_100)]
"""(call, time_ms), in order."""
ANSWERS = sorted(
    ((number, time_ms + _random.randrange(1, 2 * PATIENCE_MS)) for number, time_ms in CALLS if _random.random() < 0.8),
    key=lambda answer: answer[1],
)
"""(call, time_ms), in order: some too late, some never."""


class Unanswered(KeyedCoProcessFunction):
    """An answer may be read before its call: it is kept until the call is there."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.called_ms = runtime_context.get_state(ValueStateDescriptor("called"))
        self.answered_ms = runtime_context.get_list_state(ListStateDescriptor("answered"))

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        self.called_ms.update(value[1])
        ctx.timer_service().register_event_time_timer(value[1] + PATIENCE_MS)
        yield from self.match(ctx)

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        self.answered_ms.add(value[1])
        yield from self.match(ctx)

    def match(self, ctx: KeyedCoProcessFunction.Context) -> Any:
        called_ms = self.called_ms.value()
        if called_ms is None:
            return
        for answered_ms in self.answered_ms.get():
            if answered_ms <= called_ms + PATIENCE_MS:
                ctx.timer_service().delete_event_time_timer(called_ms + PATIENCE_MS)
                yield "answered", ctx.get_current_key(), answered_ms - called_ms
                self.called_ms.clear()
        self.answered_ms.clear()

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Any:
        yield "unanswered", ctx.get_current_key(), timestamp
        self.called_ms.clear()


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda item, _: item[1])
    calls = env.from_collection(CALLS).assign_timestamps_and_watermarks(strategy)
    answers = env.from_collection(ANSWERS).assign_timestamps_and_watermarks(strategy)
    return calls.connect(answers).key_by(0, 0).process(Unanswered())


def expected() -> Counter[Any]:
    answered = dict(ANSWERS)
    return Counter(
        ("answered", call, answered[call] - time_ms)
        if answered.get(call, time_ms + PATIENCE_MS + 1) <= time_ms + PATIENCE_MS
        else ("unanswered", call, time_ms + PATIENCE_MS)
        for call, time_ms in CALLS
    )


UNANSWERED_CALLS = GoldenJob("unanswered_calls", build, expected, epoch_records=150)
