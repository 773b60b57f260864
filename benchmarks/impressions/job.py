"""headwater: impressions per tweet and hour. Each interval updates every one of a million keys once.

`--results` says where readers find the sums of the open hour: `state` (queried in place), or Redis, to which each slot
writes all keys that changed, at the end of every interval, with `redis` (redis-py) or `raw` (commands written by hand).
All three are the same job, with the same operator and the same checkpoints.

`rate` is updates per second through the whole job, source and shuffle included. `writes` is updates per second of the
slots' time until readers find them: folded into state, and for Redis also written there. `flushes` is the latter alone.
"""

from __future__ import annotations

import contextlib
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.headwater_job import CountingSink, headwater_environment, throughput
from benchmarks.impressions.flush import ClientFlush, Flush, RawFlush
from benchmarks.impressions.readers import STATE, reading
from benchmarks.impressions.redis_server import redis_server
from benchmarks.workload import StampDir, arguments, report
from headwater.common import Time, WatermarkStrategy
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import AggregateFunction, MapFunction, RuntimeContext
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.datastream.window import TumblingEventTimeWindows
from headwater.operators.window.aligned import AlignedWindowOperator
from headwater.operators.window.settings import Aggregated, WindowSettings
from headwater.time.triggers import EventTimeTrigger

FACTOR = 7919
"""Shares no factor with the number of keys, so that multiples of it visit all keys, in no order."""

Impression = tuple[int, int, int]
"""(tweet, when in ms, how many)"""


class ToImpression(MapFunction):
    """Two splits are read side by side; together, each interval of theirs has every key once."""

    def __init__(self, keys: int, records: int, stamps: StampDir) -> None:
        self.keys, self.half, self.stamps = keys, records // 2, stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("first")

    def map(self, value: int) -> Impression:
        position = value % self.half * 2 + value // self.half
        return position * FACTOR % self.keys, position // self.keys * 1000, 1


class Sum(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Impression, accumulator: int) -> int:
        return accumulator + value[2]

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Impression, record_timestamp: int) -> int:
        return value[1]


class MeasuredWindows(AlignedWindowOperator):
    """The operator of tumbling windows, with a watch. With `flush` it writes what an epoch changed to Redis."""

    def __init__(self, key_selector: Any, settings: WindowSettings, flush: Flush | None, stamps: StampDir) -> None:
        super().__init__(key_selector, settings)
        self._flush, self._stamps = flush, stamps
        self._changed: list[list[Any]] = []
        self._seconds = 0.0

    def _add_all(self, keys: list[Any], namespaces: Any, values: list[Any]) -> None:
        started = time.perf_counter()
        super()._add_all(keys, namespaces, values)
        self._seconds += time.perf_counter() - started
        self._changed.append(keys)

    def prepare_commit(self) -> list[Any]:
        changed, self._changed = self._changed, []
        count = sum(map(len, changed))
        if count:
            self._stamps.stamp("folded", keys=count, seconds=self._seconds)
            self._seconds = 0.0
            if self._flush is not None:
                started = time.perf_counter()
                for start in self._panes.namespaces():
                    pane = self._panes.peek(start)
                    sums = {key: pane[key] for keys in changed for key in keys if key in pane}
                    self._flush.write(f"impressions:{start}:", sums)
                self._stamps.stamp("flushed", keys=count, seconds=time.perf_counter() - started)
        return super().prepare_commit()


def per_second(stamps: StampDir, parallelism: int, *events: str) -> float:
    """How many keys the slots could take per second if they did nothing else than these events."""
    keys = sum(each["keys"] for each in stamps.read(events[0]))
    return keys / sum(each["seconds"] for event in events for each in stamps.read(event)) * parallelism


def main() -> None:
    options = arguments(keys=1_000_000, intervals=10, parallelism=2, results=STATE, checkpoint="10 s", reads=1000)
    stamps, records = StampDir(options.stamps), options.keys * options.intervals
    state_dir = str(Path.cwd() / "state")
    env = headwater_environment(
        options,
        **{
            "headwater.epoch.min-records": str(options.keys),
            "headwater.epoch.max-records": str(options.keys),
            "execution.checkpointing.interval": options.checkpoint,
            "headwater.state.dir": state_dir,
        },
    )
    hour = TumblingEventTimeWindows.of(Time.hours(1))
    settings = WindowSettings(hour, EventTimeTrigger(), Aggregated(Sum()))
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    with contextlib.ExitStack() as stack:
        flush: Flush | None = None
        source = f"{STATE}:{state_dir}"
        if options.results != STATE:
            path = stack.enter_context(redis_server())
            flush = {"redis": ClientFlush, "raw": RawFlush}[options.results](path)
            source = f"redis:{path}"
        if options.reads:
            stack.enter_context(reading(stamps, source, options.keys, options.reads))
        stream = (
            env.from_source(NumberSequenceSource(0, records - 1), WatermarkStrategy.no_watermarks(), "numbers")
            .map(ToImpression(options.keys, records, stamps))
            .assign_timestamps_and_watermarks(watermarks)
            .key_by(lambda impression: impression[0])
        )
        windows = partial(MeasuredWindows, stream._key_selector, settings, flush, stamps)
        stream._add("window", "Impressions", windows, keyed=True).uid("impressions").sink_to(CountingSink(stamps))
        env.execute("impressions")
    (reads,) = stamps.read("reads") or [{}]
    report(
        **throughput(stamps, records),
        writes=per_second(stamps, options.parallelism, "folded", "flushed"),
        flushes=per_second(stamps, options.parallelism, "flushed") if flush is not None else None,
        **{name: value for name, value in reads.items() if name not in ("at", "pid")},
    )


if __name__ == "__main__":
    main()
