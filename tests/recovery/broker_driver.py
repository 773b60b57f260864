"""A driver that counts from a broker to the same and kills itself: `broker_driver.py WHICH URL DIRECTORY STEP TIMES`.

WHICH is redis or nats. As `kafka_driver.py`; the steps inside a commit are those of `IN_COMMIT`.
"""

from __future__ import annotations

import sys
from typing import Any

from headwater.common import Configuration, SimpleStringSchema, WatermarkStrategy
from headwater.common.config.values import IN_PROCESS
from headwater.common.connector import Sink, Source
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.nats import NatsSink, NatsSource
from headwater.datastream.connectors.nats import sink as nats_sink
from headwater.datastream.connectors.redis import RedisSink, RedisStreamsSource
from headwater.datastream.connectors.redis import sink as redis_sink
from tests.recovery.hitting import Hitter

IN_COMMIT = ("before-delivery", "half-delivered", "delivered")


def redis_job(url: str, hitter: Hitter) -> tuple[Source, Sink]:
    real = redis_sink.RedisCommitter.deliver

    def deliver(self: Any, name: str, batch: list[Any], mark: int, after: int) -> Any:
        hitter.reached("before-delivery")
        found = real(self, name, batch, mark, after)
        hitter.reached("half-delivered")  # a script is whole, but an epoch has several
        hitter.reached("delivered")
        return found

    redis_sink.RedisCommitter.deliver = deliver  # type: ignore[method-assign]
    source = RedisStreamsSource.builder().set_url(url).set_streams("in").set_bounded()
    sink = RedisSink.builder().set_url(url).set_command(lambda text: ("RPUSH", "out", text))
    return source.set_value_only_deserializer(SimpleStringSchema()).build(), sink.build()


def nats_job(url: str, hitter: Hitter) -> tuple[Source, Sink]:
    real = nats_sink.publish

    async def publish(client: Any, stream: str, messages: Any) -> None:
        hitter.reached("before-delivery")
        half = len(messages) // 2
        await real(client, stream, messages[:half])
        hitter.reached("half-delivered")
        await real(client, stream, messages[half:])
        hitter.reached("delivered")

    nats_sink.publish = publish
    source = NatsSource.builder().set_url(url).set_stream("IN").set_bounded()
    sink = NatsSink.builder().set_url(url).set_stream("OUT").set_subject("out")
    return (
        source.set_value_only_deserializer(SimpleStringSchema()).build(),
        sink.set_value_serializer(SimpleStringSchema()).build(),
    )


def main(which: str, url: str, directory: str, step: str, times: int) -> None:
    hitter = Hitter(step, times)
    hitter.watch_epochs()
    source, sink = {"redis": redis_job, "nats": nats_job}[which](url, hitter)
    settings = {"headwater.master": IN_PROCESS, "execution.checkpointing.dir": directory}
    settings |= {"headwater.epoch.min-records": "20", "headwater.epoch.max-records": "20"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(2)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "in")
    counted = stream.map(lambda text: (f"k{int(text) % 7}", 1)).key_by(lambda pair: pair[0])
    counted.reduce(lambda a, b: (a[0], a[1] + b[1])).map(lambda pair: f"{pair[0]} {pair[1]}").sink_to(sink)
    env.execute("counting")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
