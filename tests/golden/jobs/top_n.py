"""The three best-selling products per region and hour: MapState with many entries per key."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from headwater.common import WatermarkStrategy
from headwater.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import MapStateDescriptor
from tests.golden.jobs.golden_job import GoldenJob

HOUR_MS = 3_600_000
N = 3

_random = random.Random(6)
SALES = [
    (f"region-{_random.randrange(5)}", f"product-{int(_random.triangular(0, 30, 5))}", number * 15_000)
    for number in range(1_600)
]
"""(region, product, time_ms), in order."""


class TopN(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.sold = runtime_context.get_map_state(MapStateDescriptor("sold"))  # {(hour, product): count}

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        _, product, time_ms = value
        hour = time_ms // HOUR_MS
        self.sold[hour, product] = (self.sold[hour, product] or 0) + 1
        ctx.timer_service().register_event_time_timer((hour + 1) * HOUR_MS - 1)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        hour = timestamp // HOUR_MS
        counts = {product: count for (of_hour, product), count in self.sold.items() if of_hour == hour}
        for product in counts:
            del self.sold[hour, product]
        yield ctx.get_current_key(), hour, best(counts)


def best(counts: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:N])


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda sale, _: sale[2])
    sales = env.from_collection(SALES).assign_timestamps_and_watermarks(strategy)
    return sales.key_by(lambda sale: sale[0]).process(TopN())


def expected() -> Counter[Any]:
    counts: dict[tuple[str, int], Counter[str]] = {}
    for region, product, time_ms in SALES:
        counts.setdefault((region, time_ms // HOUR_MS), Counter())[product] += 1
    return Counter((region, hour, best(sold)) for (region, hour), sold in counts.items())


TOP_N = GoldenJob("top_n", build, expected, epoch_records=160)
