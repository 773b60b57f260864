"""Average per sensor and minute of readings that come out of order: MapState, event-time timers."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from headwater.common import Duration, WatermarkStrategy
from headwater.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import MapStateDescriptor
from tests.golden.jobs.golden_job import GoldenJob

MINUTE_MS = 60_000
MAX_DELAY_MS = 5_000

_random = random.Random(2)
_in_order = [
    (f"sensor-{_random.randrange(7)}", second * 1_000, _random.randrange(-400, 1_200)) for second in range(1_500)
]
READINGS = sorted(_in_order, key=lambda reading: reading[1] + _random.randrange(MAX_DELAY_MS))
"""(sensor, time_ms, tenths of a degree), each at most `MAX_DELAY_MS` late."""


class MinuteAverages(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.minutes = runtime_context.get_map_state(MapStateDescriptor("minutes"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        _, time_ms, tenths = value
        start = time_ms - time_ms % MINUTE_MS
        count, total = self.minutes.get(start) or (0, 0)
        self.minutes.put(start, (count + 1, total + tenths))
        ctx.timer_service().register_event_time_timer(start + MINUTE_MS - 1)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        start = timestamp + 1 - MINUTE_MS
        count, total = self.minutes.get(start)  # type: ignore[misc]
        self.minutes.remove(start)
        yield ctx.get_current_key(), start, count, total / count


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(MAX_DELAY_MS))
    readings = env.from_collection(READINGS).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda reading, _: reading[1])
    )
    return readings.key_by(lambda reading: reading[0]).process(MinuteAverages())


def expected() -> Counter[Any]:
    found: dict[tuple[str, int], list[int]] = {}
    for sensor, time_ms, tenths in READINGS:
        found.setdefault((sensor, time_ms - time_ms % MINUTE_MS), []).append(tenths)
    return Counter((sensor, start, len(all_), sum(all_) / len(all_)) for (sensor, start), all_ in found.items())


SENSOR_AVERAGES = GoldenJob("sensor_averages", build, expected, epoch_records=150)
