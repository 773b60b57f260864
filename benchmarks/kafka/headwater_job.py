"""headwater: a keyed count, one output per record, from a generator or from Kafka, to a counter or to Kafka.

Kafka is the project's test broker, in a process of its own, which takes part of the machine. Measured from the first
record that reaches the first Python function to the end of the job, after the last commit.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from typing import Any

from confluent_kafka import Producer

from benchmarks.headwater_job import CountingSink, headwater_environment
from benchmarks.workload import StampDir, arguments, key_of, report
from headwater.common import SimpleStringSchema, WatermarkStrategy
from headwater.common.connector import Sink, Source
from headwater.datastream import MapFunction, RuntimeContext
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.kafka import (
    DeliveryGuarantee,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)

PARTITIONS = 2


class WithKey(MapFunction):
    def __init__(self, keys: int, stamps: StampDir) -> None:
        self.keys = keys
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("first")

    def map(self, value: str) -> tuple[int, int]:
        return key_of(int(value), self.keys), 1


def start_broker(stack: ExitStack) -> str:
    """Start the broker, and return its address."""
    command = [sys.executable, "-m", "headwater.testing.kafka", f"in:{PARTITIONS}", f"out:{PARTITIONS}"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stack.enter_context(process)
    assert process.stdin is not None and process.stdout is not None
    stack.callback(process.stdin.close)
    return process.stdout.readline().strip()


def fill(servers: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "batch.size": 1_000_000})
    for i in range(records):
        while True:
            try:
                producer.produce("in", str(i).encode(), partition=i % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def kafka_source(servers: str) -> Source:
    builder = KafkaSource.builder().set_bootstrap_servers(servers).set_topics("in")
    builder.set_bounded(KafkaOffsetsInitializer.latest())
    return builder.set_value_only_deserializer(SimpleStringSchema()).build()


def kafka_sink(servers: str, guarantee: str) -> Sink:
    schema = KafkaRecordSerializationSchema.builder().set_topic("out")
    schema.set_value_serialization_schema(SimpleStringSchema())
    builder = KafkaSink.builder().set_bootstrap_servers(servers).set_record_serializer(schema.build())
    return builder.set_delivery_guarantee(DeliveryGuarantee[guarantee]).set_property("linger.ms", "5").build()


def main() -> None:
    options = arguments(
        records=1_000_000, keys=1000, parallelism=2, epoch="2 s", interval="2 s", guarantee="", engine="auto"
    )
    stamps = StampDir(options.stamps)
    env = headwater_environment(options, **{"execution.checkpointing.interval": options.interval})
    with ExitStack() as stack:
        source: Source = DataGeneratorSource(str, options.records)
        sink: Sink = CountingSink(stamps)
        if options.guarantee:
            servers = start_broker(stack)
            fill(servers, options.records)
            source, sink = kafka_source(servers), kafka_sink(servers, options.guarantee)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "in")
        counts = stream.map(WithKey(options.keys, stamps)).key_by(lambda pair: pair[0]).reduce(_add)
        counts.map(_text).sink_to(sink)
        env.execute("kafka")
        stamps.stamp("ended")
    seconds = stamps.seconds_between("first", "ended")
    report(records=options.records, seconds=seconds, rate=options.records / seconds)


def _add(left: Any, right: Any) -> tuple[int, int]:
    return left[0], left[1] + right[1]


def _text(pair: tuple[int, int]) -> str:
    return f"{pair[0]} {pair[1]}"


if __name__ == "__main__":
    main()
