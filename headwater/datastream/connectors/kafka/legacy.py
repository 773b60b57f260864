"""Flink's older names for the same things, for programs that still have them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from headwater.common.errors import ConfigurationError
from headwater.common.serialization import DeserializationSchema, SerializationSchema
from headwater.common.typeinfo import Types
from headwater.datastream.connectors.base import DeliveryGuarantee
from headwater.datastream.connectors.kafka.client import library
from headwater.datastream.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from headwater.datastream.connectors.kafka.record import KafkaRecordDeserializationSchema
from headwater.datastream.connectors.kafka.serialization import KafkaRecordSerializationSchema
from headwater.datastream.connectors.kafka.sink import KafkaSink
from headwater.datastream.connectors.kafka.source import KafkaSource, KafkaSourceSettings
from headwater.datastream.no_effect import warn_no_effect


class FlinkKafkaConsumer(KafkaSource):
    """A `KafkaSource` for `env.add_source(...)`. Without another call it begins at the group's offsets."""

    def __init__(
        self,
        topics: str | list[str],
        deserialization_schema: DeserializationSchema,
        properties: Mapping[str, str],
    ) -> None:
        library()
        if not properties.get("bootstrap.servers"):
            raise ConfigurationError("FlinkKafkaConsumer: the properties have no 'bootstrap.servers'")
        super().__init__(
            KafkaSourceSettings(
                properties={key: str(value) for key, value in properties.items()},
                topics=(topics,) if isinstance(topics, str) else tuple(topics),
                schema=KafkaRecordDeserializationSchema.value_only(deserialization_schema),
            )
        )
        self._schema = deserialization_schema
        self.set_start_from_group_offsets()

    def set_commit_offsets_on_checkpoints(self, commit_on_checkpoints: bool) -> FlinkKafkaConsumer:
        self.settings.properties["commit.offsets.on.checkpoint"] = str(commit_on_checkpoints).lower()
        self._configure()
        return self

    def set_start_from_earliest(self) -> FlinkKafkaConsumer:
        self.settings.starting = KafkaOffsetsInitializer.earliest()
        return self

    def set_start_from_latest(self) -> FlinkKafkaConsumer:
        self.settings.starting = KafkaOffsetsInitializer.latest()
        return self

    def set_start_from_timestamp(self, startup_offsets_timestamp: int) -> FlinkKafkaConsumer:
        self.settings.starting = KafkaOffsetsInitializer.timestamp(startup_offsets_timestamp)
        return self

    def set_start_from_group_offsets(self) -> FlinkKafkaConsumer:
        """Where the group has no offset, as the property `auto.offset.reset` says (latest, as in Kafka)."""
        asked = self.settings.properties.get("auto.offset.reset", "latest").upper()
        if asked not in KafkaOffsetResetStrategy.__members__:
            raise ConfigurationError(
                f"auto.offset.reset: expected 'earliest', 'latest' or 'none', found {asked.lower()!r}"
            )
        self.settings.starting = KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy[asked])
        return self

    def disable_filter_restored_partitions_with_subscribed_topics(self) -> FlinkKafkaConsumer:
        """Restored partitions are always read on, as this asks for."""
        return self

    def get_produced_type(self) -> Any:
        """What the schema says of its records, if it does."""
        said = getattr(self._schema, "get_produced_type", None)
        return Types.PICKLED_BYTE_ARRAY() if said is None else said()


class Semantic(Enum):
    """What a `FlinkKafkaProducer` promises."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


class FlinkKafkaProducer(KafkaSink):
    """A `KafkaSink` for `stream.add_sink(...)`."""

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema,
        producer_config: Mapping[str, str],
        kafka_producer_pool_size: int = 5,
        semantic: Semantic = Semantic.AT_LEAST_ONCE,
    ) -> None:
        library()
        if not producer_config.get("bootstrap.servers"):
            raise ConfigurationError("FlinkKafkaProducer: the properties have no 'bootstrap.servers'")
        if not isinstance(semantic, Semantic):
            raise ConfigurationError(f"FlinkKafkaProducer: expected a Semantic, found {semantic!r}")
        builder = KafkaRecordSerializationSchema.builder().set_topic(topic)
        super().__init__(
            {key: str(value) for key, value in producer_config.items()},
            builder.set_value_serialization_schema(serialization_schema).build(),
            DeliveryGuarantee[semantic.name],
            "flink-kafka-producer",
            write_timestamps=False,
        )
        if kafka_producer_pool_size != 5:
            warn_no_effect("kafka_producer_pool_size", "one producer commits all output")

    def set_log_failures_only(self, log_failures_only: bool) -> FlinkKafkaProducer:
        """True: do not fail because of messages that Kafka does not take."""
        if log_failures_only and self.guarantee is DeliveryGuarantee.AT_LEAST_ONCE:
            self.guarantee = DeliveryGuarantee.NONE
        return self

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> FlinkKafkaProducer:
        """False: epochs do not wait for Kafka, so a failure may lose messages."""
        if not flush_on_checkpoint and self.guarantee is DeliveryGuarantee.AT_LEAST_ONCE:
            self.guarantee = DeliveryGuarantee.NONE
        return self

    def set_write_timestamp_to_kafka(self, write_timestamp_to_kafka: bool) -> FlinkKafkaProducer:
        self.write_timestamps = write_timestamp_to_kafka
        return self

    def ignore_failures_after_transaction_timeout(self) -> FlinkKafkaProducer:
        """Without effect: output waits in checkpoint storage, where no transaction runs out of time."""
        warn_no_effect(
            "ignore_failures_after_transaction_timeout()",
            "output waits in checkpoint storage, where no transaction runs out of time",
        )
        return self
