"""A job with a series whose answers can be checked without knowing when they were given.

The records of a key come in one order, whatever happens. So the windows of a key, added up, are some number `n` of
records, and must be exactly the windows of its first `n` records: a window that is missing, or is there twice, or has a
value of another checkpoint, gives others.
"""

from __future__ import annotations

import sys

from headwater.common import Duration, Time, WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.archive import SqliteArchive
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.window import TumblingEventTimeWindows

KEYS = 16
WINDOW_MS = 1_000
SERIES = "records"


def event(number: int) -> tuple[str, int, int]:
    """(key, when, 1). Records are out of order by up to 30 ms; those of a key are 80 ms apart."""
    return f"key-{number * 7 % KEYS:02d}", 1000 + number * 5 - number * 37 % 30, 1


def windows_of(key: str, records: int) -> list[tuple[int, int, int]]:
    """(start, end, number of records) of the windows of the first `records` records of `key`."""
    counts: dict[int, int] = {}
    number = 0
    while records:
        name, when, _ = event(number)
        number += 1
        if name == key:
            start = when // WINDOW_MS * WINDOW_MS
            counts[start] = counts.get(start, 0) + 1
            records -= 1
    return [(start, start + WINDOW_MS, count) for start, count in sorted(counts.items())]


def main(archive: str, rate: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    source = DataGeneratorSource(event, rate_per_second=rate)
    watermarks = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(100))
    records = env.from_source(source, WatermarkStrategy.no_watermarks(), "records").uid("source").set_parallelism(1)
    (
        records.assign_timestamps_and_watermarks(watermarks.with_timestamp_assigner(lambda each, _: each[1]))
        .key_by(lambda each: each[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
        .as_queryable_series(SERIES, lambda a, b: (a[0], a[1], a[2] + b[2]), SqliteArchive(archive))
    )
    env.execute("series")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
