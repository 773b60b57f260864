"""Apache Kafka as source and sink, with the names of pyflink.datastream.connectors.kafka. Needs `headwater[kafka]`."""

from headwater.datastream.connectors.base import DeliveryGuarantee
from headwater.datastream.connectors.kafka.legacy import FlinkKafkaConsumer, FlinkKafkaProducer, Semantic
from headwater.datastream.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from headwater.datastream.connectors.kafka.record import KafkaRecord, KafkaRecordDeserializationSchema
from headwater.datastream.connectors.kafka.serialization import (
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
)
from headwater.datastream.connectors.kafka.sink import KafkaSink, KafkaSinkBuilder
from headwater.datastream.connectors.kafka.source import KafkaSource, KafkaSourceBuilder

__all__ = [
    "DeliveryGuarantee",
    "FlinkKafkaConsumer",
    "FlinkKafkaProducer",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaRecord",
    "KafkaRecordDeserializationSchema",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
    "Semantic",
]
