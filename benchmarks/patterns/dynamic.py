"""headwater: `--patterns` patterns from a stream on one stream of events, each for another `kind` of event.

Each pattern asks for an event of its kind and then, within ten minutes, for a high value. There are as many kinds as
patterns, so that each event begins a match of one: what is measured is how much the others cost. Measured as
`keyed_count`.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.headwater_job import CountingSink, headwater_environment, throughput
from benchmarks.patterns.events import HIGH, KEYS, WITHIN_MS, key_of, mixed, time_of, value_of
from benchmarks.workload import StampDir, arguments, report
from headwater.cep import CEP
from headwater.common import WatermarkStrategy
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import MapFunction, RuntimeContext
from headwater.datastream.connectors.number_seq import NumberSequenceSource


class Event(NamedTuple):
    key: int
    kind: int
    value: int
    time_ms: int


class AsEvent(MapFunction):
    def __init__(self, keys: int, kinds: int, half: int, stamps: StampDir) -> None:
        self.keys = keys
        self.kinds = kinds
        self.half = half
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("first")

    def map(self, value: int) -> Event:
        kind = mixed(value + 1) % self.kinds
        return Event(key_of(value, self.keys), kind, value_of(value), time_of(value, self.half))


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Event, record_timestamp: int) -> int:
        return value.time_ms


def update(kind: int) -> dict[str, object]:
    steps = [{"name": "first", "where": f"kind == {kind}"}, {"followed_by": "high", "where": f"value >= {HIGH}"}]
    pattern = {"steps": steps, "within_ms": WITHIN_MS, "skip": "skip_past_last_event"}
    return {"id": f"kind-{kind}", "version": 1, "pattern": pattern}


def main() -> None:
    options = arguments(records=300_000, keys=KEYS, patterns=100, parallelism=2, epoch="2 s")
    stamps = StampDir(options.stamps)
    env = headwater_environment(options)
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    events = (
        env.from_source(NumberSequenceSource(0, options.records - 1), WatermarkStrategy.no_watermarks(), "numbers")
        .map(AsEvent(options.keys, options.patterns, options.records // 2, stamps))
        .assign_timestamps_and_watermarks(watermarks)
        .key_by(lambda event: event.key)
    )
    patterns = env.from_collection([update(kind) for kind in range(options.patterns)])
    found = CEP.dynamic_patterns(events, patterns).select(lambda match: (match.pattern_id, match["high"][0].time_ms))
    found.sink_to(CountingSink(stamps))
    env.execute("dynamic patterns")
    report(**throughput(stamps, options.records), patterns=options.patterns)


if __name__ == "__main__":
    main()
