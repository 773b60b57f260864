"""Rows that take something back never become one more row in a sink that only inserts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headwater.common import Encoder, Row, RowKind, SimpleStringSchema, Types, WatermarkStrategy
from headwater.common.connector import Sink
from headwater.common.errors import SerializationError
from headwater.common.serialization import SerializationSchema
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.delta import DeltaSink
from headwater.datastream.connectors.file_system import BulkWriters, FileSink
from headwater.datastream.connectors.http import HttpSink
from headwater.datastream.connectors.iceberg import IcebergSink
from headwater.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from headwater.datastream.connectors.mqtt import MqttConnection, MqttSink
from headwater.datastream.connectors.nats import NatsSink
from headwater.datastream.connectors.print_sink import PrintSink
from headwater.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink
from headwater.datastream.connectors.redis import RedisSink
from headwater.datastream.formats.changelog_json import DebeziumJsonSerializationSchema
from headwater.datastream.formats.json_rows import JsonRowSerializationSchema
from headwater.testing import CollectingSink, OneInputOperatorHarness, in_process

TYPE = Types.ROW_NAMED(["id"], [Types.INT()])
JSON = JsonRowSerializationSchema.builder().with_type_info(TYPE).build()


class WithKind(SerializationSchema):
    """A user's, that looks at the kind."""

    def serialize(self, value: Any) -> bytes:
        return f"{value.get_row_kind()} {value['id']}".encode()


def kafka(schema: SerializationSchema) -> Sink:
    made = KafkaRecordSerializationSchema.builder().set_topic("t").set_value_serialization_schema(schema).build()
    return KafkaSink.builder().set_bootstrap_servers("h:1").set_record_serializer(made).build()


def nats(schema: SerializationSchema) -> Sink:
    return (
        NatsSink.builder().set_url("nats://h:1").set_stream("s").set_subject("s").set_value_serializer(schema).build()
    )


def rabbit(schema: SerializationSchema) -> Sink:
    config = RMQConnectionConfig.Builder().set_uri("amqp://h:1/").build()
    return RMQSink(config, "q", schema)


def http(schema: SerializationSchema) -> Sink:
    return HttpSink.builder().set_url("http://h:1/").set_body(schema).build()


def mqtt(schema: SerializationSchema) -> Sink:
    return MqttSink(MqttConnection("h"), "t", schema)


def lines(schema: SerializationSchema) -> Sink:
    return FileSink.for_row_format("out", Encoder.of_schema(schema)).build()


BROKERS = [kafka, nats, rabbit, http, mqtt, lines]


@pytest.mark.parametrize("make", BROKERS, ids=lambda make: str(make.__name__))
def test_the_format_says_whether_kinds_are_lost(make: Any) -> None:
    assert make(JSON).insert_only
    assert not make(DebeziumJsonSerializationSchema(TYPE)).insert_only
    assert not make(WithKind()).insert_only
    assert not make(SimpleStringSchema()).insert_only


def test_what_only_inserts_and_what_does_not() -> None:
    for writers in (BulkWriters.parquet(), BulkWriters.json_lines(), BulkWriters.csv()):
        assert FileSink.for_bulk_format("out", writers).build().insert_only
    assert IcebergSink.insert_only
    assert not FileSink.for_row_format("out", Encoder.simple_string_encoder()).build().insert_only  # it shows the kind
    assert not RedisSink.builder().set_url("redis://h:1").set_command(lambda row: ("DEL", "a")).build().insert_only
    assert not PrintSink().insert_only


@pytest.mark.parametrize("kind", [RowKind.DELETE, RowKind.UPDATE_BEFORE])
def test_a_lake_refuses_them_and_the_error_says_what_to_do(tmp_path: Path, kind: RowKind) -> None:
    harness = OneInputOperatorHarness(DeltaSink.for_table(str(tmp_path / "t")).set_schema(TYPE).build())
    harness.process_elements([Row(id=1), Row.of_kind(RowKind.UPDATE_AFTER, id=2)])
    with pytest.raises(SerializationError, match=rf"DeltaSink.*{kind.name}.*'?id'?.*get_row_kind.*set_row_kind"):
        harness.process_elements([Row(id=3), Row.of_kind(kind, id=4)])


@pytest.mark.parametrize("lenient", [True, False], ids=["with dead letters", "without"])
def test_in_a_job(tmp_path: Path, lenient: bool) -> None:
    letters = CollectingSink()

    def row(number: int) -> Row:
        return Row.of_kind(RowKind.DELETE if number == 7 else RowKind.INSERT, id=number)

    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        stream = env.from_source(DataGeneratorSource(row, count=10), WatermarkStrategy.no_watermarks(), "rows").sink_to(
            FileSink.for_bulk_format(str(tmp_path), BulkWriters.json_lines()).build()
        )
        if lenient:
            stream.with_dead_letters(letters)
            env.execute()
        else:
            with pytest.raises(SerializationError, match="kind DELETE"):
                env.execute()
    written = [json.loads(line)["id"] for file in tmp_path.rglob("part*") for line in file.read_text().splitlines()]
    assert sorted(written) == ([0, 1, 2, 3, 4, 5, 6, 8, 9] if lenient else [])
    assert [letter.stage for letter in letters.results()] == (["sink"] if lenient else [])
