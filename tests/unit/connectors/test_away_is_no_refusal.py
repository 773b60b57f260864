"""A schema registry or a look-up that is away, or refuses the password, says nothing about a record: it must not
become a dead letter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.common import Configuration, WatermarkStrategy
from headwater.common.connector import Source
from headwater.common.errors import ExternalSystemError, HeadwaterError
from headwater.datastream import MapFunction, StreamExecutionEnvironment
from headwater.datastream.connectors.file_system import FileSource, StreamFormat
from headwater.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from headwater.datastream.connectors.redis import RedisStreamsSource
from headwater.datastream.formats import schema_registry
from headwater.datastream.formats.avro import (
    AvroSchema,
    ConfluentRegistryAvroDeserializationSchema,
    ConfluentRegistryAvroSerializationSchema,
)
from headwater.testing import CollectingSink, in_process
from headwater.testing.kafka import KafkaBroker
from tests.unit.connectors.brokers.servers import redis_server
from tests.unit.connectors.kafka import clients
from tests.unit.datastream.formats.registry_server import Registry, running_registry

SCHEMA = AvroSchema('{"type":"record","name":"R","fields":[{"name":"id","type":"long"}]}')
PATIENT = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "10 ms"}
ASKED = 4
"""So often is a registry asked that cannot answer."""


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setattr(schema_registry, "_FIRST_PAUSE_SECONDS", 0.001)
    with running_registry() as running:
        yield running


@pytest.fixture(params=["kafka", "redis", "file"])
def source(request: pytest.FixtureRequest, registry: Registry, tmp_path: Path) -> Iterator[Source]:
    """Ten messages."""
    write = ConfluentRegistryAvroSerializationSchema.for_generic("r-value", SCHEMA, registry.url)
    messages = [write.serialize({"id": number}) for number in range(20, 30)]  # no line feed is in them
    schema = ConfluentRegistryAvroDeserializationSchema.for_generic(SCHEMA, registry.url)
    if request.param == "kafka":
        with KafkaBroker({"in": 1}) as broker:
            clients.produce(broker.bootstrap_servers, "in", messages, 1)
            builder = KafkaSource.builder().set_bootstrap_servers(broker.bootstrap_servers).set_topics("in")
            builder.set_bounded(KafkaOffsetsInitializer.latest()).set_value_only_deserializer(schema)
            yield builder.build()
    elif request.param == "redis":
        import redis

        with redis_server(tmp_path) as url:
            client = redis.Redis.from_url(url)
            for message in messages:
                client.xadd("in", {"value": message})
            streams = RedisStreamsSource.builder().set_url(url).set_streams("in").set_bounded()
            yield streams.set_value_only_deserializer(schema).build()
    else:
        (tmp_path / "in").write_bytes(b"".join(message + b"\n" for message in messages))
        lines = StreamFormat.schema_lines_format(schema)
        yield FileSource.for_record_stream_format(lines, str(tmp_path / "in")).build()


def run(source: Source) -> tuple[list[Any], list[Any]]:
    """What came of the messages, and the dead letters."""
    results, letters = CollectingSink(), CollectingSink()
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(PATIENT))
        env.from_source(source, WatermarkStrategy.no_watermarks(), "in").with_dead_letters(letters).sink_to(results)
        env.execute()
    return results.results(), letters.results()


def test_the_epoch_is_tried_again(registry: Registry, source: Source) -> None:
    registry.failures = [503] * (2 * ASKED)
    results, letters = run(source)
    assert letters == []
    assert sorted(record["id"] for record in results) == list(range(20, 30))


class TestSink:
    """Of three records."""

    def run(self, broker: KafkaBroker, registry: Registry) -> list[Any]:
        letters = CollectingSink()
        value = ConfluentRegistryAvroSerializationSchema.for_generic("out-value", SCHEMA, registry.url)
        schema = KafkaRecordSerializationSchema.builder().set_topic("out").set_value_serialization_schema(value)
        builder = KafkaSink.builder().set_bootstrap_servers(broker.bootstrap_servers)
        sink = builder.set_record_serializer(schema.build()).build()
        with in_process():
            env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(PATIENT))
            env.from_collection([{"id": n} for n in range(3)]).sink_to(sink).with_dead_letters(letters)
            env.execute()
        return letters.results()

    def test_the_epoch_is_tried_again(self, registry: Registry) -> None:
        registry.failures = [503] * (2 * ASKED)
        with KafkaBroker({"out": 1}) as broker:
            assert self.run(broker, registry) == []
            assert len(clients.read_all(broker.bootstrap_servers, "out")) == 3

    def test_a_schema_that_does_not_fit_fails_the_job(self, registry: Registry) -> None:
        registry.compatible = False
        with KafkaBroker({"out": 1}) as broker, pytest.raises(HeadwaterError, match=r"HTTP 409 .*incompatible"):
            self.run(broker, registry)


def test_a_refusal_fails_the_job(registry: Registry, source: Source) -> None:
    registry.password = "me:another"
    with pytest.raises(HeadwaterError, match=r"schema registry .* refused schema 100: HTTP 401 Unauthorized"):
        run(source)


class AwayForAWhile(MapFunction):
    """Looks up in a server that does not answer at first."""

    asked = 0

    def map(self, value: int) -> int:
        AwayForAWhile.asked += 1
        if 2 <= AwayForAWhile.asked < 6:
            raise ExternalSystemError("the server is away")
        return value


@pytest.mark.parametrize("keyed", [False, True])
def test_a_function_whose_server_is_away_is_tried_again(keyed: bool) -> None:
    AwayForAWhile.asked = 0
    results, letters = CollectingSink(), CollectingSink()
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(PATIENT))
        numbers = env.from_collection(list(range(8)))
        looked_up = (numbers.key_by(lambda n: n % 2) if keyed else numbers).map(AwayForAWhile())
        looked_up.with_dead_letters(letters).sink_to(results)
        env.execute()
    assert (letters.results(), sorted(results.results())) == ([], list(range(8)))
