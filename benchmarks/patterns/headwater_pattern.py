"""headwater: a low, a middle and a high value of one key within ten minutes, by lambdas. Checkpointing on.

`--follows next`: one right after the other; `followed_by`: with anything in between. Measured as `keyed_count`. The
processor time is that of all processes, from the start on; slots, which are gone at the end, leave theirs in a stamp.
"""

from __future__ import annotations

import os
import time
from typing import Any

from benchmarks.harness.cpu import cpu_seconds, mark_processes, marked_processes
from benchmarks.headwater_job import CountingSink, headwater_environment, throughput
from benchmarks.patterns.events import HIGH, KEYS, LOW, WITHIN_MS, key_of, time_of, value_of
from benchmarks.workload import StampDir, arguments, report
from headwater.cep import CEP, AfterMatchSkipStrategy, Pattern, PatternSelectFunction
from headwater.common import Duration, WatermarkStrategy
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import MapFunction, RuntimeContext
from headwater.datastream.connectors.number_seq import NumberSequenceSource

Event = tuple[int, int, int]


class AsEvent(MapFunction):
    """Number -> (key, value, time)."""

    def __init__(self, keys: int, half: int, stamps: StampDir) -> None:
        self.keys = keys
        self.half = half
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("first")

    def map(self, value: int) -> Event:
        return key_of(value, self.keys), value_of(value), time_of(value, self.half)


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Event, record_timestamp: int) -> int:
        return value[2]


class Times(PatternSelectFunction):
    """Key and times of the three events."""

    def __init__(self, stamps: StampDir) -> None:
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("slot")

    def close(self) -> None:
        self.stamps.stamp("slot_cpu", seconds=time.process_time())

    def select(self, pattern: dict[str, list[Event]]) -> tuple[int, int, int, int]:
        low, middle, high = pattern["low"][0], pattern["middle"][0], pattern["high"][0]
        return low[0], low[2], middle[2], high[2]


def pattern_of(follows: str) -> Pattern:
    def then(before: Pattern, name: str) -> Pattern:
        longer: Pattern = getattr(before, follows)(name)
        return longer

    low = Pattern.begin("low", AfterMatchSkipStrategy.skip_past_last_event()).where(lambda event: event[1] < LOW)
    middle = then(low, "middle").where(lambda event: LOW <= event[1] < HIGH)
    high = then(middle, "high").where(lambda event: event[1] >= HIGH)
    return high.within(Duration.of_millis(WITHIN_MS))


def stream_of(env: Any, options: Any, stamps: StampDir) -> Any:
    """The keyed stream of events."""
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    return (
        env.from_source(NumberSequenceSource(0, options.records - 1), WatermarkStrategy.no_watermarks(), "numbers")
        .map(AsEvent(options.keys, options.records // 2, stamps))
        .assign_timestamps_and_watermarks(watermarks)
        .key_by(lambda event: event[0])
    )


def cpu_s(stamps: StampDir, mark: str, before: float) -> float:
    """Of all processes of the job; `before`: what this one had spent when it began."""
    gone = {stamp["pid"]: stamp["seconds"] for stamp in stamps.read("slot_cpu")}
    alive = set(marked_processes(mark)) - set(gone)
    return sum(map(cpu_seconds, alive)) + sum(gone.values()) - before


def main() -> None:
    options = arguments(records=2_000_000, keys=KEYS, parallelism=2, epoch="2 s", follows="next", backend="hashmap")
    stamps = StampDir(options.stamps)
    mark = mark_processes()
    before = cpu_seconds(os.getpid())
    env = headwater_environment(options, **{"state.backend.type": options.backend})
    stream = stream_of(env, options, stamps)
    CEP.pattern(stream, pattern_of(options.follows)).select(Times(stamps)).sink_to(CountingSink(stamps))
    env.execute("pattern")
    report(**throughput(stamps, options.records), cpu_us=cpu_s(stamps, mark, before) / options.records * 1e6)


if __name__ == "__main__":
    main()
