"""headwater: views per campaign and ten seconds, from Kafka or files, joined by a real Redis, into that Redis.

Kafka is the project's test broker, in a process of its own; both servers take part of the machine. Measured from the
first record that reaches the join to the end of the job, after the last commit. The sum of all counts is checked.
"""

from __future__ import annotations

import os
from contextlib import ExitStack

import redis

from benchmarks.headwater_job import headwater_environment
from benchmarks.workload import StampDir, arguments, report
from benchmarks.yahoo.events import PER_MS, campaign_views, start_broker, write_files
from examples.yahoo_streaming import (
    CAMPAIGNS,
    AdEvents,
    JoinCampaigns,
    from_kafka,
    put_campaigns,
    redis_server,
    to_redis,
    views_per_campaign,
    write_events,
)
from headwater.common import WatermarkStrategy
from headwater.common.connector import Source
from headwater.datastream import RuntimeContext
from headwater.datastream.connectors.file_system import FileSource, StreamFormat


class StampedJoin(JoinCampaigns):
    def __init__(self, url: str, stamps: StampDir) -> None:
        super().__init__(url)
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("first")


def main() -> None:
    options = arguments(records=1_000_000, parallelism=2, epoch="2 s", interval="2 s", source="kafka", engine="auto")
    stamps = StampDir(options.stamps)
    env = headwater_environment(options, **{"execution.checkpointing.interval": options.interval})
    with ExitStack() as stack:
        url = stack.enter_context(redis_server())
        put_campaigns(url)
        source: Source
        if options.source == "kafka":
            servers = start_broker(stack)
            write_events(servers, options.records, PER_MS)
            source = from_kafka(servers)
        else:
            directory = os.path.join(os.getcwd(), "events")
            write_files(directory, options.records)
            lines = StreamFormat.schema_lines_format(AdEvents())
            source = FileSource.for_record_stream_format(lines, directory).build()
        events = env.from_source(source, WatermarkStrategy.no_watermarks(), "ad events")
        views_per_campaign(events, StampedJoin(url, stamps), late_ms=1000).sink_to(to_redis(url))
        env.execute("yahoo")
        stamps.stamp("ended")
        client = redis.Redis.from_url(url)
        views = sum(int(count) for n in range(CAMPAIGNS) for count in client.hvals(f"campaign-{n}"))
        assert views == campaign_views(options.records), f"{views} views counted, not {campaign_views(options.records)}"
    seconds = stamps.seconds_between("first", "ended")
    report(records=options.records, seconds=seconds, rate=options.records / seconds)


if __name__ == "__main__":
    main()
