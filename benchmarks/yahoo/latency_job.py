"""headwater: how late the counts are, from Kafka to Redis, at a fixed rate of events.

A process of its own writes events with the time at which they are due. The latency of a count is from the end of its
window to the moment at which a reader of Redis sees it; the reader looks every 5 ms. The first windows do not count.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from typing import Any

import redis

from benchmarks.headwater_job import headwater_environment
from benchmarks.workload import StampDir, arguments, percentile, report
from benchmarks.yahoo.events import start_broker
from examples.yahoo_streaming import WINDOW_MS, AdEvents, JoinCampaigns, put_campaigns, redis_server, views_per_campaign
from headwater.common import WatermarkStrategy
from headwater.datastream.connectors.kafka import KafkaSource
from headwater.datastream.connectors.redis import RedisSink

LOOK_SECONDS = 0.005


def commands(count: Any) -> list[tuple[Any, ...]]:
    return [("HSET", count[0], count[1], count[2]), ("RPUSH", "log", f"{count[1]} {count[2]}")]


def main() -> None:
    options = arguments(rate=50_000, seconds=60, parallelism=2, epoch="2 s", engine="auto", warm_up=20)
    StampDir(options.stamps)
    env = headwater_environment(options)
    with ExitStack() as stack:
        url = stack.enter_context(redis_server())
        put_campaigns(url)
        servers = start_broker(stack)
        source = KafkaSource.builder().set_bootstrap_servers(servers).set_topics("ad-events")
        source.set_value_only_deserializer(AdEvents())
        events = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "ad events")
        counts = views_per_campaign(events, JoinCampaigns(url), late_ms=0)
        counts.sink_to(RedisSink.builder().set_url(url).set_command(commands).build())
        job = env.execute_async("yahoo latency")
        command = [sys.executable, "-m", "benchmarks.yahoo.feeder", servers, str(options.rate), str(options.seconds)]
        feeder = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        begin_ms = time.time() * 1000
        seen = _watch(url, time.monotonic() + options.seconds)
        job.cancel().result()
        assert feeder.stdout is not None
        behind = float(feeder.stdout.read() or -1)
    counted = [
        (ms - start - WINDOW_MS, views) for ms, start, views in seen if start > begin_ms + options.warm_up * 1000
    ]
    latencies = [latency for latency, _ in counted]
    if not latencies:
        raise SystemExit("no window was counted: the job started too late; give it more --seconds")
    report(
        counts=len(latencies),
        p50=percentile(latencies, 0.5),
        p99=percentile(latencies, 0.99),
        views=sum(views for _, views in counted),
        rate=options.rate,
        feeder_behind_ms=behind,
    )


def _watch(url: str, deadline: float) -> list[tuple[float, int, int]]:
    """(when it was seen, start of the window, views)"""
    client = redis.Redis.from_url(url)
    seen: list[tuple[float, int, int]] = []
    while time.monotonic() < deadline:
        new = client.lrange("log", len(seen), -1)
        now_ms = time.time() * 1000
        seen += ((now_ms, *map(int, each.split())) for each in new)  # type: ignore[misc]
        time.sleep(LOOK_SECONDS)
    return seen


if __name__ == "__main__":
    main()
