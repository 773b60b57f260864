"""Clicks from Kafka, counted per page, exactly once to Kafka. Starts a Kafka broker for tests by itself.

Give the address of a real one, with the topics "clicks" and "counts", to use that: kafka_counts.py localhost:9092
"""

from __future__ import annotations

import contextlib
import sys

from confluent_kafka import Producer

from headwater.common import SimpleStringSchema, Types, WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.kafka import (
    DeliveryGuarantee,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from headwater.testing.kafka import KafkaBroker

PAGES = ["home", "shop", "home", "cart", "home", "shop", "help", "cart"]


def write_clicks(servers: str) -> None:
    """What a web server would do."""
    producer = Producer({"bootstrap.servers": servers})
    for number, page in enumerate(PAGES):
        producer.produce("clicks", page.encode(), partition=number % 2)
    producer.flush()


def count_pages(servers: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics("clicks")
        .set_group_id("page-counter")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(
            KafkaRecordSerializationSchema.builder()
            .set_topic("counts")
            .set_value_serialization_schema(SimpleStringSchema())
            .build()
        )
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .build()
    )
    clicks = env.from_source(source, WatermarkStrategy.no_watermarks(), "clicks")
    counts = clicks.map(lambda page: (page, 1)).key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    counts.map(lambda pair: f"{pair[0]} {pair[1]}", Types.STRING()).sink_to(sink)
    env.execute("page counts")


def print_counts(servers: str) -> None:
    """Another job reads what the first one has written, up to now."""
    env = StreamExecutionEnvironment.get_execution_environment()
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics("counts")
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    with env.from_source(source, WatermarkStrategy.no_watermarks(), "counts").execute_and_collect() as lines:
        for line in sorted(lines):
            print(line)


def main() -> None:
    with contextlib.ExitStack() as stack:
        if len(sys.argv) > 1:
            servers = sys.argv[1]
        else:
            servers = stack.enter_context(KafkaBroker({"clicks": 2, "counts": 2})).bootstrap_servers
            write_clicks(servers)
        count_pages(servers)
        print_counts(servers)


if __name__ == "__main__":
    main()
