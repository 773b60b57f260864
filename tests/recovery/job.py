"""The job that is killed: two keyed stages with value state, map state and event-time timers.

Its output is a multiset that depends on neither parallelism, nor where epochs end, nor in which order the splits of the
source are read: any difference between two runs is a fault of the engine. Numbered lines ("the 17th of its key") make
state that was lost or applied twice visible in the output of every record after it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from headwater.common import Encoder, WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.file_system import FileSink, RollingPolicy
from headwater.datastream.state import MapStateDescriptor, ValueStateDescriptor
from headwater.runtime.slot import full_snapshot, recent_deltas
from tests.recovery import kills, sabotage

KEYS = 97
GROUPS = 7
MS_PER_RECORD = 10
BUCKET_MS = 15_000

Reading = tuple[str, int, int]
"""(sensor, time_ms, value)"""

# This module is imported by the driver, by Python workers and by slots.
sabotage.install()
kills.install()


def reading(index: int) -> Reading:
    return f"sensor-{index * 31 % KEYS}", index * MS_PER_RECORD, index * 7919 % 1_000


class CountReadings(KeyedProcessFunction):
    """Numbers the readings of a sensor, and sums them up per bucket of event time."""

    def open(self, runtime_context: RuntimeContext) -> None:
        # In the slot: full snapshots come often enough that runs of a few dozen epochs are killed while one is being
        # written, and restore from some.
        full_snapshot.MAX_DELTAS = 6
        recent_deltas.ABSORB_DELTAS = 3
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.buckets = runtime_context.get_map_state(MapStateDescriptor("buckets"))

    def process_element(self, value: Reading, ctx: KeyedProcessFunction.Context) -> Any:
        sensor, time_ms, amount = value
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        start = time_ms - time_ms % BUCKET_MS
        count, total = self.buckets.get(start) or (0, 0)
        self.buckets.put(start, (count + 1, total + amount))
        ctx.timer_service().register_event_time_timer(start + BUCKET_MS - 1)
        yield "reading", sensor, number

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        start = timestamp - BUCKET_MS + 1
        count, total = self.buckets.get(start) or (0, 0)
        self.buckets.remove(start)
        yield "bucket", ctx.get_current_key(), start, count, total


class NumberLines(KeyedProcessFunction):
    """Hands on what comes, and numbers it by group: the second stage has state, too."""

    def open(self, runtime_context: RuntimeContext) -> None:
        full_snapshot.MAX_DELTAS = 6
        recent_deltas.ABSORB_DELTAS = 3
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        yield value
        yield "line", ctx.get_current_key(), number


def group_of(line: Any) -> int:
    sensor: str = line[1]
    return sum(sensor.encode()) % GROUPS


def build(env: StreamExecutionEnvironment, records: int, output: str) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda each, _: each[1])
    readings = env.from_source(DataGeneratorSource(reading, records), strategy, "readings")
    counted = readings.key_by(lambda each: each[0]).process(CountReadings()).uid("count-readings")
    lines = counted.key_by(group_of).process(NumberLines()).uid("number-lines")
    lines.map(repr).sink_to(
        FileSink.for_row_format(output, Encoder.simple_string_encoder())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .build()
    )


def expected(records: int) -> Counter[str]:
    """The output, from a plain loop over the same readings."""
    numbers: Counter[str] = Counter()
    buckets: dict[tuple[str, int], tuple[int, int]] = {}
    lines: list[Any] = []
    for sensor, time_ms, amount in map(reading, range(records)):
        numbers[sensor] += 1
        lines.append(("reading", sensor, numbers[sensor]))
        start = time_ms - time_ms % BUCKET_MS
        count, total = buckets.get((sensor, start), (0, 0))
        buckets[sensor, start] = (count + 1, total + amount)
    lines += [("bucket", sensor, start, *sums) for (sensor, start), sums in buckets.items()]
    of_group = Counter(map(group_of, lines))
    lines += [("line", group, number + 1) for group, count in of_group.items() for number in range(count)]
    return Counter(map(repr, lines))
