"""Markers in the stream: a watermark generator that believes what the data says about itself.

    python examples/batch_markers.py

A bank's branches send their payments of a minute in any order, then a marker: this minute is complete. Nobody knows how
late a payment can be, but the marker is certain, so the watermark comes from it alone. See docs/watermarks.md.
"""

from headwater.common import Time, WatermarkStrategy
from headwater.common.watermark_strategy import WatermarkGenerator
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.window import TumblingEventTimeWindows

MINUTE_MS = 60_000

RECORDS = [
    ("payment", "zurich", 50_000, 20),
    ("payment", "zurich", 3_000, 10),  # 47 seconds older than the one before, and in time
    ("payment", "geneva", 61_000, 5),  # of the next minute already
    ("payment", "geneva", 59_000, 1),
    ("complete", None, MINUTE_MS - 1, 0),
    ("payment", "zurich", 70_000, 7),
    ("complete", None, 2 * MINUTE_MS - 1, 0),
]


class CompleteMinutes(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        if event[0] == "complete":
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output):
        pass


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
by_markers = WatermarkStrategy.for_generator(CompleteMinutes).with_timestamp_assigner(lambda record, _: record[2])
(
    env.from_collection(RECORDS)
    .assign_timestamps_and_watermarks(by_markers)
    .filter(lambda record: record[0] == "payment")
    .map(lambda record: (record[1], record[2] // MINUTE_MS, record[3]))
    .key_by(lambda payment: payment[0])
    .window(TumblingEventTimeWindows.of(Time.minutes(1)))
    .reduce(lambda left, right: (left[0], left[1], left[2] + right[2]))
    .print()
)
env.execute("payments per minute")
