"""Another client beside the connector's: what it writes is read, and it reads what is written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from headwater.common import SimpleStringSchema
from headwater.datastream.connectors.kafka import (
    DeliveryGuarantee,
    KafkaOffsetsInitializer,
    KafkaRecord,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaSourceBuilder,
)


def produce(servers: str, topic: str, values: Iterable[Any], partitions: int = 2, **options: Any) -> None:
    """Write values round robin, as text."""
    producer = Producer({"bootstrap.servers": servers})
    for number, value in enumerate(values):
        producer.produce(
            topic, value if isinstance(value, bytes) else str(value).encode(), partition=number % partitions, **options
        )
    assert producer.flush(30) == 0


def read_all(servers: str, topic: str, isolation: str = "read_committed") -> list[KafkaRecord]:
    """All that readers see, by partition and offset."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "test", "enable.partition.eof": True, "isolation.level": isolation}
    )
    partitions = list(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found: list[KafkaRecord] = []
    ended: set[int] = set()
    while len(ended) < len(partitions):
        message = consumer.poll(30)
        assert message is not None, "the broker does not answer"
        error = message.error()
        if error is None:
            found.append(KafkaRecord.of(message))
        elif error.code() == KafkaError._PARTITION_EOF:
            ended.add(message.partition())  # other errors pass: the client tries again
    consumer.close()
    return sorted(found, key=lambda record: (record.partition, record.offset))


def values(servers: str, topic: str) -> list[str]:
    return sorted(record.value.decode() for record in read_all(servers, topic) if record.value is not None)


def source(servers: str, *topics: str) -> KafkaSourceBuilder:
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(*(topics or ("in",)))
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema())
    )


def sink(servers: str, guarantee: DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE, topic: str = "out") -> KafkaSink:
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_key_serialization_schema(FirstWord())
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    builder = KafkaSink.builder().set_bootstrap_servers(servers).set_record_serializer(schema)
    return builder.set_delivery_guarantee(guarantee).build()


class FirstWord(SimpleStringSchema):
    def serialize(self, value: Any) -> bytes:
        return str(value).partition(" ")[0].encode()
