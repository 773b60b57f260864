"""MQTT, with a real mosquitto: unpacked from Debian's packages, if it can be fetched."""

from __future__ import annotations

import itertools
import os
import resource
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import pytest

from headwater.common import SimpleStringSchema
from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.buffered_source import Buffer, Feed, Position
from headwater.datastream.connectors.mqtt import MqttConnection, MqttRecord, MqttSink, MqttSource
from headwater.datastream.connectors.mqtt.polling import let_poll
from headwater.testing import STEPS, CollectingSink, JobCrashed, assert_same_records, in_process
from tests.unit.connectors.brokers.programs import NO_EVENT_TIME, crashed_on_the_way_to, run_once
from tests.unit.connectors.brokers.servers import mosquitto
from tests.waiting import wait_until

_names = itertools.count()
let_poll(mqtt)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with mosquitto(tmp_path_factory.mktemp("mqtt")) as port:
        yield port


class Other:
    """Another client of the broker."""

    def __init__(self, port: int, topic: str = "") -> None:
        self.got: list[str] = []
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        self.client.on_message = lambda client, data, message: self.got.append(message.payload.decode())
        subscribed = threading.Event()
        self.client.on_subscribe = lambda *_: subscribed.set()
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        if topic:
            wait_until(self.client.is_connected)
            self.client.subscribe(topic, 1)
            assert subscribed.wait(10)

    def publish(self, topic: str, values: list[Any]) -> None:
        for value in values:
            self.client.publish(topic, str(value), 1).wait_for_publish(10)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def name() -> str:
    return f"n{next(_names)}"


def followed(source: MqttSource, results: CollectingSink, letters: CollectingSink | None = None) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_source(source, NO_EVENT_TIME, "mqtt")
    (stream if letters is None else stream.with_dead_letters(letters)).sink_to(results)
    return env.execute_async("follows")


@pytest.mark.parametrize("step", ["begin", "acked", "manifest-written", "sink-committed"])
def test_a_driver_that_dies_loses_nothing(step: str, port: int) -> None:
    topic, client_id, other = name(), name(), Other(port)
    connection = MqttConnection("127.0.0.1", port)

    def source() -> MqttSource:
        return MqttSource(connection, [f"{topic}/#"], client_id, SimpleStringSchema())

    results = CollectingSink()
    with in_process(epoch_records=10) as here:
        job = followed(source(), results)  # the broker knows the subscription from now on
        wait_until(lambda: job.progress()["epochs"] > 0)
        job.cancel().result()
        other.publish(f"{topic}/a", list(range(40)))
        here.crash_job(epoch=job.progress()["epoch"] + 3, at=step)
        with pytest.raises(JobCrashed):
            followed(source(), results).get_job_execution_result().result()
        other.publish(f"{topic}/b", list(range(40, 60)))
        job = followed(source(), results)
        wait_until(lambda: {str(number) for number in range(60)} <= set(results.results()))
        job.cancel().result()
    other.close()
    counted = Counter(results.results())
    assert set(counted) == {str(number) for number in range(60)}, "at least once"
    assert sum(counted.values()) <= 60 + 40, "and not more than what was not acknowledged comes again"


def test_a_broker_that_grants_less_than_the_source_needs_is_an_error(tmp_path: Path) -> None:
    with mosquitto(tmp_path, "", 0, "max_qos 0") as port:
        source = MqttSource(MqttConnection("127.0.0.1", port), ["a", "b"], name())
        with pytest.raises(HeadwaterError, match=r"MqttSource: MQTT broker .* grants QoS 0 for 'a', not 1.*qos=0"):
            run_once(source)


def test_what_a_checkpoint_has_is_acknowledged_and_does_not_come_again(port: int) -> None:
    topic, client_id, other = name(), name(), Other(port)
    connection = MqttConnection("127.0.0.1", port)
    first, second, letters = CollectingSink(), CollectingSink(), CollectingSink()
    with in_process(epoch_records=10):
        job = followed(MqttSource(connection, [topic], client_id, lambda each: int(each.payload)), first, letters)
        wait_until(lambda: job.progress()["epochs"] > 0)
        other.publish(topic, [1, "no number", 2])
        wait_until(lambda: len(first.results()) == 2 and len(letters.results()) == 1)
        other.publish(topic, [3])
        wait_until(lambda: len(first.results()) == 3)
        other.publish(topic, [4])
        wait_until(lambda: len(first.results()) == 4)
        job.cancel().result()
    (letter,) = letters.results()
    source = MqttSource(connection, [topic], client_id)
    assert source.read_again(letter.as_rejected()) == (MqttRecord(topic, b"no number"),)
    with in_process():  # another job, but the same client for the broker
        job = followed(source, second)
        other.publish(topic, ["new"])
        wait_until(lambda: any(each.payload == b"new" for each in second.results()))
        job.cancel().result()
    other.close()
    assert not [each for each in second.results() if each.payload in (b"1", b"2", b"3", b"no number")]


def running(source: MqttSource) -> tuple[Feed, Buffer]:
    feed = source.new_feed()
    buffer = Buffer(Position(), feed)
    feed.start(Position(), buffer)
    return feed, buffer


def payloads(buffer: Buffer) -> list[bytes]:
    return [each.message.value.payload for each in buffer.slice(0, 100)]


def published(other: Other, topic: str, text: str, buffer: Buffer, qos: int = 1) -> bool:
    """Publish, and say whether it has come: before the source has subscribed it does not."""
    other.client.publish(topic, text, qos).wait_for_publish(10)
    return text.encode() in payloads(buffer)


def test_an_acknowledgement_is_of_the_message_that_it_was_meant_for(port: int) -> None:
    """When the broker has forgotten the session, it gives the same ids to other messages."""
    topic, client_id, other = name(), name(), Other(port)
    source = MqttSource(MqttConnection("127.0.0.1", port), [topic], client_id)

    feed, buffer = running(source)
    wait_until(lambda: published(other, topic, "first", buffer))
    thief = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id, protocol=mqtt.MQTTv5)
    thief.connect("127.0.0.1", port, clean_start=True)  # ends the session of the other
    thief.loop_start()
    wait_until(thief.is_connected)
    thief.disconnect()
    thief.loop_stop()

    wait_until(lambda: published(other, topic, "second", buffer))
    received = buffer.slice(0, 100)
    first, second = received[0], received[payloads(buffer).index(b"second")]
    assert first.token[1] == second.token[1], "the same id"
    feed.acknowledge([first])
    buffer.close()
    feed.close()
    feed, buffer = running(source)
    wait_until(lambda: payloads(buffer)[:1] == [b"second"])
    feed.close()
    other.close()


def test_quality_of_service_2_loses_nothing_either(port: int) -> None:
    """The broker would forget a message as soon as the driver has it."""
    topic, client_id, other = name(), name(), Other(port)
    source = MqttSource(MqttConnection("127.0.0.1", port), [topic], client_id, qos=2)
    feed, buffer = running(source)
    wait_until(lambda: published(other, topic, "a", buffer, qos=2))
    feed.close()
    feed, again = running(source)
    wait_until(lambda: payloads(again)[:1] == [b"a"])
    feed.close()
    other.close()


@pytest.mark.parametrize("step", STEPS)
def test_the_sink_is_at_least_once(step: str, port: int) -> None:
    topic = name()
    reader = Other(port, topic)
    connection = MqttConnection("127.0.0.1", port)
    expected = crashed_on_the_way_to(lambda: MqttSink(connection, topic, SimpleStringSchema()), 50, step)
    wait_until(lambda: len(reader.got) >= 50)
    reader.close()
    assert_same_records(reader.got, expected)  # a crash within a commit would double, but there was none


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4096 and hard < 4096:
        pytest.skip("this system allows few descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    held = [os.open(os.devnull, os.O_RDONLY)]
    while held[-1] < 1100:
        held.append(os.dup(held[0]))
    yield
    for each in held:
        os.close(each)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_process_with_many_descriptors(port: int, many_descriptors: None) -> None:
    test_a_driver_that_dies_loses_nothing("acked", port)


def test_bad_input(tmp_path: Path, port: int) -> None:
    connection = MqttConnection("127.0.0.1", 1)
    with pytest.raises(HeadwaterError, match=r"MqttSource: cannot connect to MQTT broker 127.0.0.1:1: "):
        run_once(MqttSource(connection, ["t"], "c"))
    with mosquitto(tmp_path, password="right") as guarded:
        wrong = MqttConnection("127.0.0.1", guarded, "user", "wrong-secret")
        with pytest.raises(HeadwaterError, match=r"MqttSink: MQTT broker .* refuses the connection") as caught:
            run_once(MqttSink(wrong, "t", SimpleStringSchema()))
        assert "wrong-secret" not in str(caught.value) + repr(wrong)
    good = MqttConnection("127.0.0.1", port)
    for bad in (
        lambda: MqttConnection(""),
        lambda: MqttSource(good, [], "c"),
        lambda: MqttSource(good, "topic", "c"),
        lambda: MqttSource(good, ["t"], ""),
        lambda: MqttSource(good, ["t"], "c", qos=3),
        lambda: MqttSource(good, ["t"], "c", 5),  # type: ignore[arg-type]
        lambda: MqttSink(good, 5, SimpleStringSchema()),  # type: ignore[arg-type]
        lambda: MqttSink(good, "t", None),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigurationError):
            bad()
