"""Impressions per tweet and hour: closed hours are archived, the open one is queried where it is counted.

    headwater run -p 2 -c impressions/job examples/tweet_impressions/impressions.py impressions/archive.db

An hour takes 3.6 seconds here, so that one can watch it pass.
"""

import sys

from headwater.common import Duration, Time, WatermarkStrategy
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import AggregateFunction, StreamExecutionEnvironment
from headwater.datastream.connectors.archive import SqliteArchive
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.window import TumblingEventTimeWindows

BEGIN_MS = 1_767_225_600_000  # 2026-01-01 00:00 UTC
PER_SECOND = 2_000
TWEETS = 10_000
SPEED = 1_000


def impression(index):
    """Half of all impressions are of one tweet in a hundred."""
    tweet = index * 7919 % TWEETS
    popular = tweet // 100 if index % 2 else tweet
    return f"tweet-{popular:05d}", BEGIN_MS + index * 1000 * SPEED // PER_SECOND, 1 + index % 3


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Sum(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[2]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


def main(archive, count=None):
    env = StreamExecutionEnvironment.get_execution_environment()
    source = DataGeneratorSource(impression, count, rate_per_second=PER_SECOND if count is None else None)
    watermarks = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(1))
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "impressions")
        .uid("source")
        .assign_timestamps_and_watermarks(watermarks.with_timestamp_assigner(EventTime()))
        .key_by(lambda each: each[0])
        .window(TumblingEventTimeWindows.of(Time.hours(1)))
        .as_queryable_series("impressions", Sum(), SqliteArchive(archive))
    )
    env.execute("impressions")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
