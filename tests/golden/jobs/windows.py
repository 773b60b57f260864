"""Four kinds of windows over the same late rides: reduced, by slices, as sessions, by number with an evictor."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from headwater.common import Duration, Time, WatermarkStrategy
from headwater.datastream import AggregateFunction, DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from headwater.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from tests.golden.jobs.golden_job import GoldenJob

MINUTE_MS = 60_000
MAX_DELAY_MS = 20_000
SLIDING_MINUTES = 6
GAP_MS = 2 * MINUTE_MS
EVERY, LAST = 3, 5

_random = random.Random(41)
_in_order = [(f"line-{_random.randrange(12)}", second * 4_000, _random.randrange(100)) for second in range(1_400)]
RIDES = sorted(_in_order, key=lambda ride: ride[1] + _random.randrange(MAX_DELAY_MS))
"""(line, time_ms, passengers), each at most `MAX_DELAY_MS` late."""


class Total(AggregateFunction):
    """(rides, passengers); its `merge` lets sliding windows share slices."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Any, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value[2]

    def get_result(self, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class WithWindow(ProcessWindowFunction):
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def process(self, key: Any, context: ProcessWindowFunction.Context, elements: Iterable[Any]) -> Any:
        for element in elements:
            yield self.kind, key, context.window().start, context.window().end, element


def fullest(one: Any, other: Any) -> Any:
    """The ride with the most passengers, the earliest of these."""
    return max(one, other, key=lambda ride: (ride[2], -ride[1]))


def last_rides(key: str, window: Any, rides: Iterable[Any]) -> Any:
    yield "last", key, tuple(rides)


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(MAX_DELAY_MS))
    rides = env.from_collection(RIDES).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda ride, _: ride[1])
    )
    by_line = rides.key_by(lambda ride: ride[0])
    tumbling = by_line.window(TumblingEventTimeWindows.of(Time.minutes(2))).reduce(fullest, WithWindow("fullest"))
    sliding = by_line.window(SlidingEventTimeWindows.of(Time.minutes(SLIDING_MINUTES), Time.minutes(1))).aggregate(
        Total(), WithWindow("sliding")
    )
    sessions = by_line.window(EventTimeSessionWindows.with_gap(Time.milliseconds(GAP_MS))).aggregate(
        Total(), WithWindow("session")
    )
    last = (
        by_line.window(GlobalWindows.create())
        .trigger(CountTrigger.of(EVERY))
        .evictor(CountEvictor.of(LAST))
        .apply(last_rides)
    )
    return tumbling.union(sliding, sessions, last)


def expected() -> Counter[Any]:
    by_line: dict[str, list[Any]] = defaultdict(list)  # {line: rides in the order they came}
    for ride in RIDES:
        by_line[ride[0]].append(ride)
    return Counter(result for line, rides in by_line.items() for result in results_of(line, rides))


def results_of(line: str, rides: list[Any]) -> Any:
    windows: dict[tuple[str, int, int], list[Any]] = defaultdict(list)  # {(kind, start, end): rides}
    for ride in rides:
        start = ride[1] // (2 * MINUTE_MS) * 2 * MINUTE_MS
        windows["fullest", start, start + 2 * MINUTE_MS].append(ride)
        for back in range(SLIDING_MINUTES):
            start = (ride[1] // MINUTE_MS - back) * MINUTE_MS
            windows["sliding", start, start + SLIDING_MINUTES * MINUTE_MS].append(ride)
    for session in sessions_of(sorted(rides, key=lambda ride: ride[1])):
        windows["session", session[0][1], session[-1][1] + GAP_MS] = session
    for (kind, start, end), members in windows.items():
        if kind == "fullest":
            yield kind, line, start, end, max(members, key=lambda ride: (ride[2], -ride[1]))
        else:
            yield kind, line, start, end, (len(members), sum(ride[2] for ride in members))
    for count in range(EVERY, len(rides) + 1, EVERY):
        yield "last", line, tuple(rides[max(0, count - LAST) : count])


def sessions_of(rides: list[Any]) -> list[list[Any]]:
    sessions = [[rides[0]]]
    for ride in rides[1:]:
        if ride[1] - sessions[-1][-1][1] > GAP_MS:
            sessions.append([])
        sessions[-1].append(ride)
    return sessions


WINDOWS = GoldenJob("windows", build, expected, epoch_records=150)
