"""Visits of users, ended by half an hour without a click: ListState, one timer per user that moves."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from headwater.common import WatermarkStrategy
from headwater.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import ListStateDescriptor, ValueStateDescriptor
from tests.golden.jobs.golden_job import GoldenJob

MINUTE_MS = 60_000
GAP_MS = 30 * MINUTE_MS

_random = random.Random(4)
CLICKS = [(f"user-{_random.randrange(25)}", minute * MINUTE_MS, f"/page/{minute}") for minute in range(1_300)]
"""(user, time_ms, page), in order."""


class Sessions(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.pages = runtime_context.get_list_state(ListStateDescriptor("pages"))
        self.ends_ms = runtime_context.get_state(ValueStateDescriptor("ends"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        _, time_ms, page = value
        ends_ms = self.ends_ms.value()
        if ends_ms is not None:
            ctx.timer_service().delete_event_time_timer(ends_ms)
            if time_ms >= ends_ms:
                yield self.end(ctx)
        self.pages.add(page)
        self.ends_ms.update(time_ms + GAP_MS)
        ctx.timer_service().register_event_time_timer(time_ms + GAP_MS)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield self.end(ctx)

    def end(self, ctx: KeyedProcessFunction.Context) -> Any:
        session = (ctx.get_current_key(), tuple(self.pages.get()))
        self.pages.clear()
        self.ends_ms.clear()
        return session


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda click, _: click[1])
    clicks = env.from_collection(CLICKS).assign_timestamps_and_watermarks(strategy)
    return clicks.key_by(lambda click: click[0]).process(Sessions())


def expected() -> Counter[Any]:
    sessions: list[tuple[str, list[str]]] = []
    open_: dict[str, tuple[int, list[str]]] = {}  # {user: (last click, pages)}
    for user, time_ms, page in CLICKS:
        last_ms, pages = open_.get(user, (-GAP_MS, []))
        if time_ms - last_ms >= GAP_MS:
            pages = []
            sessions.append((user, pages))
        pages.append(page)
        open_[user] = (time_ms, pages)
    return Counter((user, tuple(pages)) for user, pages in sessions)


SESSIONISED_CLICKS = GoldenJob("sessionised_clicks", build, expected, epoch_records=130)
