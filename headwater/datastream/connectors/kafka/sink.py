"""The sink, and its builder."""

from __future__ import annotations

from typing import Any

from headwater.common.connector import Committer, Sink, SinkWriter, WriterContext
from headwater.common.errors import ConfigurationError, short_repr
from headwater.common.row_changes import is_insert_only
from headwater.common.secrets import shown
from headwater.datastream.connectors.base import DeliveryGuarantee
from headwater.datastream.connectors.kafka.client import library, producer
from headwater.datastream.connectors.kafka.committer import TransactionCommitter, check_new
from headwater.datastream.connectors.kafka.existing_topics import ExistingTopics
from headwater.datastream.connectors.kafka.messages import DEFAULT_MAX_BYTES, MessageFormat
from headwater.datastream.connectors.kafka.serialization import KafkaRecordSerializationSchema
from headwater.datastream.connectors.kafka.writers import DirectWriter
from headwater.datastream.connectors.spool_committer import NothingToCommit
from headwater.datastream.connectors.spool_writer import SpoolWriter


class KafkaSink(Sink):
    """Writes messages to Kafka.

    EXACTLY_ONCE: output of a checkpoint becomes visible, to readers of committed records, once and as a whole, when the
    checkpoint is durable. AT_LEAST_ONCE: messages are sent as they come, and come again after a failure. NONE: as
    AT_LEAST_ONCE, but the epoch does not wait for Kafka, so that a failure may also lose some.
    """

    def __init__(
        self,
        properties: dict[str, str],
        schema: KafkaRecordSerializationSchema,
        guarantee: DeliveryGuarantee,
        transactional_id_prefix: str,
        *,
        write_timestamps: bool = True,
    ) -> None:
        self.properties = properties
        self.schema = schema
        self.guarantee = guarantee
        self.transactional_id_prefix = transactional_id_prefix
        self.write_timestamps = write_timestamps
        self.insert_only = is_insert_only(schema.value_of)

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        return KafkaSinkBuilder()

    def __repr__(self) -> str:
        where = shown(self.properties).get("bootstrap.servers")
        return f"KafkaSink({self.schema.topic or 'several topics'} at {where}, {self.guarantee.name})"

    @property
    def _owner(self) -> str:
        return f"KafkaSink ({self.schema.topic or 'several topics'})"

    @property
    def _format(self) -> MessageFormat:
        given = self.properties.get("message.max.bytes", self.properties.get("max.request.size"))
        max_bytes = DEFAULT_MAX_BYTES if given is None else int(given)
        chooses = self.schema.topic is None or self.schema.partition_of is not None
        topics = ExistingTopics(self._owner, self.properties) if chooses else None
        return MessageFormat(self._owner, self.schema, max_bytes, self.write_timestamps, topics)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        if self.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            return SpoolWriter(context, self._format.batch)
        failures: list[tuple[str, Any]] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                failures.append((message.topic(), error))

        own = {"enable.idempotence": True, "delivery.report.only.error": True, "on_delivery": delivered}
        client = producer(self._owner, self.properties, own)
        waits = self.guarantee is DeliveryGuarantee.AT_LEAST_ONCE
        return DirectWriter(client, self._format, failures, waits=waits)

    def create_committer(self) -> Committer:
        if self.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            return TransactionCommitter(self._owner, self.properties, self.transactional_id_prefix, self.schema.topic)
        return NothingToCommit(self._check)

    def _check(self) -> None:
        if self.schema.topic is not None:
            check_new(self._owner, self.properties, self.schema.topic)


class KafkaSinkBuilder:
    """Collects the settings of a `KafkaSink`."""

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._schema: KafkaRecordSerializationSchema | None = None
        self._guarantee = DeliveryGuarantee.NONE
        self._prefix = "kafka-sink"

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """The default is NONE, as in Flink."""
        if not isinstance(delivery_guarantee, DeliveryGuarantee):
            raise ConfigurationError(
                f"set_delivery_guarantee: expected a DeliveryGuarantee, found {short_repr(delivery_guarantee, 100)}"
            )
        self._guarantee = delivery_guarantee
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """Begins the transactional id, for the rights of the client. The rest is the job's and the sink's identity."""
        if not isinstance(transactional_id_prefix, str) or not transactional_id_prefix:
            raise ConfigurationError(
                f"set_transactional_id_prefix: expected a text that is not empty, found {transactional_id_prefix!r}"
            )
        self._prefix = transactional_id_prefix
        return self

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> KafkaSinkBuilder:
        if not isinstance(record_serializer, KafkaRecordSerializationSchema):
            hint = "; did you forget build()?" if hasattr(record_serializer, "build") else ""
            raise ConfigurationError(
                "set_record_serializer: expected a KafkaRecordSerializationSchema, found "
                f"{short_repr(record_serializer, 100)}{hint}"
            )
        self._schema = record_serializer
        return self

    def set_property(self, key: str, value: str) -> KafkaSinkBuilder:
        """A property of the Kafka client. A value may refer to a secret: ${env:NAME}, ${file:/path}."""
        self._properties[key] = str(value)
        return self

    def build(self) -> KafkaSink:
        library()  # says how to get it, if it is not there
        if not self._properties.get("bootstrap.servers"):
            raise ConfigurationError("KafkaSink: no servers; call set_bootstrap_servers('host:9092')")
        if self._schema is None:
            raise ConfigurationError("KafkaSink: no schema; call set_record_serializer(...)")
        return KafkaSink(dict(self._properties), self._schema, self._guarantee, self._prefix)
