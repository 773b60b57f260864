"""headwater: impressions per tweet and hour. Each interval updates every one of a million keys once.

`--results` says where readers find the sums of the open hour: `state` (queried in place), or Redis, to which each slot
writes all keys that changed, at the end of every interval, with `redis` (redis-py) or `raw` (commands written by hand).
All three are the same job, with the same operator and the same checkpoints.

`rate` is updates per second through the whole job. `writes` is what the write alone takes, per second of the slots'
time: folding an update into state, which all three do, or writing a key to Redis, which comes on top.
"""

from __future__ import annotations

import contextlib
import time
from functools import partial
from typing import Any

from benchmarks.headwater_job import CountingSink, headwater_environment, throughput
from benchmarks.impressions.flush import ClientFlush, Flush, RawFlush
from benchmarks.impressions.redis_server import redis_server
from benchmarks.workload import StampDir, arguments, report
from headwater.common import Time, WatermarkStrategy
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import MapFunction, RuntimeContext
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.datastream.window import TumblingEventTimeWindows
from headwater.operators.window.aligned import AlignedWindowOperator
from headwater.operators.window.settings import Reduced, WindowSettings
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
                    sums = {key: pane[key][2] for keys in changed for key in keys if key in pane}
                    self._flush.write(f"impressions:{start}:", sums)
                self._stamps.stamp("flushed", keys=count, seconds=time.perf_counter() - started)
        return super().prepare_commit()


def writes_per_second(stamps: StampDir, event: str, parallelism: int) -> float:
    """How many keys the slots write per second, if they did nothing else."""
    found = stamps.read(event)
    return sum(each["keys"] for each in found) / sum(each["seconds"] for each in found) * parallelism


def main() -> None:
    options = arguments(keys=1_000_000, intervals=10, parallelism=2, results="state", checkpoint="10 s")
    stamps, records = StampDir(options.stamps), options.keys * options.intervals
    env = headwater_environment(
        options,
        **{
            "headwater.epoch.min-records": str(options.keys),
            "headwater.epoch.max-records": str(options.keys),
            "execution.checkpointing.interval": options.checkpoint,
        },
    )
    hour = TumblingEventTimeWindows.of(Time.hours(1))
    settings = WindowSettings(hour, EventTimeTrigger(), Reduced(lambda a, b: (a[0], b[1], a[2] + b[2])))
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    with contextlib.ExitStack() as stack:
        flush: Flush | None = None
        if options.results != "state":
            flush = {"redis": ClientFlush, "raw": RawFlush}[options.results](stack.enter_context(redis_server()))
        stream = (
            env.from_source(NumberSequenceSource(0, records - 1), WatermarkStrategy.no_watermarks(), "numbers")
            .map(ToImpression(options.keys, records, stamps))
            .assign_timestamps_and_watermarks(watermarks)
            .key_by(lambda impression: impression[0])
        )
        windows = partial(MeasuredWindows, stream._key_selector, settings, flush, stamps)
        stream._add("window", "Impressions", windows, keyed=True).sink_to(CountingSink(stamps))
        env.execute("impressions")
    wrote = "folded" if flush is None else "flushed"
    report(
        **throughput(stamps, records),
        writes=writes_per_second(stamps, wrote, options.parallelism),
        folds=writes_per_second(stamps, "folded", options.parallelism),
    )


if __name__ == "__main__":
    main()
