"""Clicks and sales of a minute, joined per product; and a co-group that sees the products with only one of both."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any

from headwater.common import Time, WatermarkStrategy
from headwater.datastream import DataStream, StreamExecutionEnvironment
from headwater.datastream.window import TumblingEventTimeWindows
from tests.golden.jobs.golden_job import GoldenJob

MINUTE_MS = 60_000

_random = random.Random(23)
CLICKS = [(_random.randrange(30), number * 2_500) for number in range(1_200)]
"""(product, time_ms), in order."""
SALES = [(number * 5_000, _random.randrange(33)) for number in range(600)]
"""(time_ms, product), in order."""


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    clicks = env.from_collection(CLICKS).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda click, _: click[1])
    )
    sales = env.from_collection(SALES).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda sale, _: sale[0])
    )
    minute = TumblingEventTimeWindows.of(Time.minutes(1))
    pairs = clicks.join(sales).where(0).equal_to(1).window(minute).apply(lambda click, sale: ("pair", click, sale))
    only_one = clicks.co_group(sales).where(0).equal_to(1).window(minute).apply(without_partner)
    return pairs.union(only_one)


def without_partner(clicks: list[Any], sales: list[Any]) -> Any:
    if not clicks or not sales:
        yield "alone", tuple(sorted(clicks)), tuple(sorted(sales))


def expected() -> Counter[Any]:
    groups: dict[Any, tuple[list[Any], list[Any]]] = defaultdict(lambda: ([], []))
    for click in CLICKS:
        groups[click[0], click[1] // MINUTE_MS][0].append(click)
    for sale in SALES:
        groups[sale[1], sale[0] // MINUTE_MS][1].append(sale)
    result: Counter[Any] = Counter()
    for clicks, sales in groups.values():
        result.update(("pair", click, sale) for click in clicks for sale in sales)
        result.update(without_partner(clicks, sales))
    return result


WINDOW_JOIN = GoldenJob("window_join", build, expected, epoch_records=100)
