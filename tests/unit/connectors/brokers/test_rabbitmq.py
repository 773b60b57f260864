"""RabbitMQ, with a real server: unpacked from Debian's packages, if they can be fetched."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pika
import pytest

from headwater.common import SimpleStringSchema
from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.buffered_source import Buffer, Position
from headwater.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink, RMQSource
from headwater.testing import STEPS, CollectingSink, JobCrashed, assert_same_records, in_process
from tests.unit.connectors.brokers.programs import crashed_on_the_way_to, run_once
from tests.unit.connectors.brokers.servers import rabbitmq
from tests.waiting import wait_until

_names = itertools.count()


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as port:
        yield port


class Queue:
    """A new queue, with a client of its own."""

    def __init__(self, port: int, arguments: dict[str, Any] | None = None) -> None:
        self.name = f"q{next(_names)}"
        self.config = RMQConnectionConfig.Builder().set_host("127.0.0.1").set_port(port).build()
        self.connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
        self.channel = self.connection.channel()
        self.channel.queue_declare(self.name, durable=True, arguments=arguments)

    def publish(self, values: Any, *, ids: bool = True) -> None:
        for value in values:
            properties = pika.BasicProperties(correlation_id=f"id-{value}" if ids else None)
            self.channel.basic_publish("", self.name, str(value).encode(), properties)

    def read(self) -> list[tuple[str, str]]:
        """(value, correlation id)"""
        found = []
        while (got := self.channel.basic_get(self.name, auto_ack=True))[0] is not None:
            found.append((got[2].decode(), got[1].correlation_id))
        return found

    def left(self) -> int:
        return int(self.channel.queue_declare(self.name, passive=True).method.message_count)

    def source(self, *, ids: bool = True) -> RMQSource:
        return RMQSource(self.config, self.name, ids, SimpleStringSchema())

    def follow(self, results: CollectingSink, *, ids: bool = True) -> Any:
        env = StreamExecutionEnvironment.get_execution_environment()
        self.followed = self.source(ids=ids)
        env.add_source(self.followed).sink_to(results)
        return env.execute_async("follows")

    def crash(self, results: CollectingSink, *, ids: bool = True) -> None:
        with pytest.raises(JobCrashed):
            self.follow(results, ids=ids).get_job_execution_result().result()
        self.followed.close()  # the end of a process ends its connections; this one lives on


@pytest.fixture
def queue(port: int) -> Iterator[Queue]:
    queue = Queue(port)
    yield queue
    queue.connection.close()


@pytest.mark.parametrize("step", ["begin", "acked", "manifest-written", "sink-committed"])
def test_with_correlation_ids_each_message_counts_once(step: str, queue: Queue) -> None:
    queue.publish(range(50))
    results = CollectingSink()
    with in_process(epoch_records=10) as here:
        here.crash_job(epoch=3, at=step)
        queue.crash(results)
        queue.publish(range(50, 70))
        job = queue.follow(results)
        wait_until(lambda: len(results.results()) >= 70)
        wait_until(lambda: queue.left() == 0)
        job.cancel().result()
    assert_same_records(results.results(), [str(number) for number in range(70)])


def test_without_ids_at_least_once_and_acknowledged_by_checkpoints(queue: Queue) -> None:
    queue.publish(range(40), ids=False)
    results = CollectingSink()
    with in_process(epoch_records=10) as here:
        here.crash_job(epoch=2, at="manifest-written")
        queue.crash(results, ids=False)
        job = queue.follow(results, ids=False)
        wait_until(lambda: {str(number) for number in range(40)} <= set(results.results()))
        queue.publish(["last"], ids=False)  # so that a checkpoint comes that acknowledges the others
        wait_until(lambda: "last" in results.results())
        job.cancel().result()
    assert set(Counter(results.results())) == {*(str(number) for number in range(40)), "last"}
    assert queue.left() <= 11, "what a durable checkpoint has does not come again"


def test_what_comes_again_is_acknowledged_alone(port: int) -> None:
    """In a queue with priorities it is delivered behind messages that no checkpoint has yet."""
    queue = Queue(port, {"x-max-priority": 9})
    for value, priority in (("old 1", 0), ("old 2", 0), ("new", 9)):
        properties = pika.BasicProperties(correlation_id=value, priority=priority)
        queue.channel.basic_publish("", queue.name, value.encode(), properties)
    feed = queue.source().new_feed()
    position = Position(2, None, ("old 1", "old 2"))
    buffer = Buffer(position, feed)
    feed.start(position, buffer)
    wait_until(lambda: len(buffer.slice(2, 10)) == 1)
    assert [each.message.value for each in buffer.slice(2, 10)] == [b"new"]
    wait_until(lambda: not feed._acknowledged and list(feed._outstanding) == [1])  # type: ignore[attr-defined]
    buffer.close()
    feed.close()
    wait_until(lambda: queue.left() == 1)
    assert queue.read() == [("new", "new")]
    queue.connection.close()


@pytest.mark.parametrize("step", STEPS)
def test_the_sink_publishes_once_unless_it_dies_within(step: str, queue: Queue) -> None:
    expected = crashed_on_the_way_to(lambda: RMQSink(queue.config, queue.name, SimpleStringSchema()), 50, step)
    found = queue.read()
    assert_same_records([value for value, _ in found], expected)
    assert len({id for _, id in found}) == 50


def test_bad_input(queue: Queue) -> None:
    builder = RMQConnectionConfig.Builder
    away = builder().set_host("127.0.0.1").set_port(1).build()
    with pytest.raises(HeadwaterError, match=r"RMQSource \(q\): cannot connect to RabbitMQ 127.0.0.1:1: .*refused"):
        run_once(RMQSource(away, "q", False, SimpleStringSchema()))
    with pytest.raises(HeadwaterError, match=r"queue 'none' at RabbitMQ .*NOT_FOUND"):
        run_once(RMQSink(queue.config, "none", SimpleStringSchema()))
    wrong = builder().set_uri(f"amqp://guest:wrong-secret@127.0.0.1:{queue.config.get_port()}/").build()
    with pytest.raises(HeadwaterError, match="refuses user 'guest'") as caught:
        run_once(RMQSource(wrong, queue.name, False, SimpleStringSchema()))
    assert "wrong-secret" not in str(caught.value) + repr(wrong)
    queue.publish(["x"], ids=False)
    with pytest.raises(HeadwaterError, match="has no correlation id, which use_correlation_id needs"):
        run_once(queue.source())
    for bad in (
        lambda: builder().build(),
        lambda: builder().set_uri("http://h"),
        lambda: RMQSource(builder(), "q", False, SimpleStringSchema()),  # type: ignore[arg-type]
        lambda: RMQSink(away, "q", str),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigurationError):
            bad()
