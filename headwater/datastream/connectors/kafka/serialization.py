"""What a record becomes in Kafka: topic, key, value, and, beyond PyFlink, headers and partition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from headwater.common.callables import unfit
from headwater.common.errors import ConfigurationError, short_repr
from headwater.common.serialization import SerializationSchema

Headers = Sequence[tuple[str, bytes | None]]


class KafkaTopicSelector(ABC):
    """Chooses the topic of a record."""

    @abstractmethod
    def apply(self, data: Any) -> str: ...


class KafkaRecordSerializationSchema:
    """Makes messages of records. Made by `builder()`."""

    def __init__(
        self,
        topic: str | None,
        selector: Callable[[Any], str] | None,
        key_schema: SerializationSchema | None,
        value_schema: SerializationSchema,
        headers_of: Callable[[Any], Headers] | None,
        partition_of: Callable[[Any], int] | None,
    ) -> None:
        self.topic = topic
        """The topic of all records; None: `topic_of` says."""
        self.topic_of = selector
        self.key_of = None if key_schema is None else key_schema.serialize
        self.value_of = value_schema.serialize
        self.headers_of = headers_of
        self.partition_of = partition_of

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        return KafkaRecordSerializationSchemaBuilder()


class KafkaRecordSerializationSchemaBuilder:
    """Collects the parts of a `KafkaRecordSerializationSchema`."""

    def __init__(self) -> None:
        self._topic: str | None = None
        self._selector: Callable[[Any], str] | None = None
        self._key: SerializationSchema | None = None
        self._value: SerializationSchema | None = None
        self._headers: Callable[[Any], Headers] | None = None
        self._partition: Callable[[Any], int] | None = None

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        if not isinstance(topic, str) or not topic:
            raise ConfigurationError(f"set_topic: expected the name of a topic, found {topic!r}")
        self._topic = topic
        return self

    def set_topic_selector(
        self, topic_selector: KafkaTopicSelector | Callable[[Any], str]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """The topic is what the selector, or function, says of a record."""
        self._selector = _function("set_topic_selector", getattr(topic_selector, "apply", topic_selector))
        return self

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Makes the key of a record. Records with one key are in one partition, in order."""
        self._key = _schema("set_key_serialization_schema", key_serialization_schema)
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        self._value = _schema("set_value_serialization_schema", value_serialization_schema)
        return self

    def set_headers_provider(self, headers_of: Callable[[Any], Headers]) -> KafkaRecordSerializationSchemaBuilder:
        """Beyond PyFlink: `headers_of(record)` returns [(name, bytes), ...]."""
        self._headers = _function("set_headers_provider", headers_of)
        return self

    def set_partitioner(self, partition_of: Callable[[Any], int]) -> KafkaRecordSerializationSchemaBuilder:
        """Beyond PyFlink: `partition_of(record)` returns the number of the partition."""
        self._partition = _function("set_partitioner", partition_of)
        return self

    def build(self) -> KafkaRecordSerializationSchema:
        if (self._topic is None) == (self._selector is None):
            raise ConfigurationError("KafkaRecordSerializationSchema: call either set_topic or set_topic_selector")
        if self._value is None:
            raise ConfigurationError("KafkaRecordSerializationSchema: call set_value_serialization_schema")
        return KafkaRecordSerializationSchema(
            self._topic, self._selector, self._key, self._value, self._headers, self._partition
        )


def _schema(method: str, given: Any) -> SerializationSchema:
    if not callable(getattr(given, "serialize", None)):
        raise ConfigurationError(f"{method}: expected a SerializationSchema, found {short_repr(given, 100)}")
    schema: SerializationSchema = given
    return schema


def _function(method: str, given: Any) -> Callable[[Any], Any]:
    if found := unfit(given, 1):
        raise ConfigurationError(f"{method}: expected a function of a record, found {found}")
    function: Callable[[Any], Any] = given
    return function
