"""What a message of Kafka is, and how it becomes records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from headwater.common.callables import unfit
from headwater.common.errors import ConfigurationError, short_repr
from headwater.common.rejected import Rejected
from headwater.common.serialization import DeserializationSchema

_HEADER = "header."
"""In the attributes of a rejected message, before the names of its headers."""


class KafkaRecord(NamedTuple):
    """One message, with all that Kafka knows about it."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    """Milliseconds; None if the message has none."""
    key: bytes | None
    value: bytes | None
    """None: a tombstone, which deletes its key in a compacted topic."""
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @staticmethod
    def of(message: Any) -> KafkaRecord:
        """From a message of confluent_kafka."""
        kind, timestamp = message.timestamp()
        return KafkaRecord(
            message.topic(), message.partition(), message.offset(), timestamp if kind else None, message.key(),
            message.value(), tuple(message.headers() or ()),
        )  # fmt: skip

    def rejected(self, error: str, split_id: str) -> Rejected:
        attributes: dict[str, bytes | str | int | None] = {
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "key": self.key,
        }
        attributes |= {f"{_HEADER}{name}": value for name, value in self.headers}
        where = f"offset {self.offset} of partition {self.partition} of topic '{self.topic}'"
        return Rejected(self.value, error, where, split_id, self.offset, self.timestamp, attributes)

    @staticmethod
    def of_rejected(rejected: Rejected) -> KafkaRecord:
        """The message that was rejected; of headers with one name, the last."""
        known: dict[str, Any] = rejected.attributes
        headers = tuple((name.removeprefix(_HEADER), known[name]) for name in known if name.startswith(_HEADER))
        return KafkaRecord(
            known["topic"], known["partition"], known["offset"], rejected.timestamp_ms, known["key"], rejected.raw,
            headers,
        )  # fmt: skip


class KafkaRecordDeserializationSchema(ABC):
    """Makes records of messages."""

    @abstractmethod
    def deserialize(self, record: KafkaRecord) -> Sequence[Any]:
        """Return the records of a message: none, one or several. What it raises rejects the message."""

    @staticmethod
    def value_only(deserialization_schema: DeserializationSchema) -> KafkaRecordDeserializationSchema:
        """The value, as the schema reads it. A tombstone has none, so it gives no record."""
        return ValueOnly(deserialization_schema)

    @staticmethod
    def of(function: Callable[[KafkaRecord], Any]) -> KafkaRecordDeserializationSchema:
        """What `function` makes of a message: key, headers, partition, offset, timestamp and value are in it."""
        if found := unfit(function, 1):
            raise ConfigurationError(
                f"KafkaRecordDeserializationSchema.of: expected a function of a KafkaRecord, found {found}"
            )
        return _OfFunction(function)

    @staticmethod
    def records() -> KafkaRecordDeserializationSchema:
        """The messages themselves, each a `KafkaRecord`."""
        return _OfFunction(_same)


class ValueOnly(KafkaRecordDeserializationSchema):
    """Reads values. The reader has a faster way for it than `deserialize`."""

    def __init__(self, schema: DeserializationSchema) -> None:
        if not callable(getattr(schema, "deserialize", None)):
            raise ConfigurationError(
                f"KafkaSource: expected a DeserializationSchema, such as SimpleStringSchema(), found "
                f"{short_repr(schema, 100)}"
            )
        self.schema = schema
        self.deserialize_all: Callable[[bytes], Sequence[Any]] | None = None
        """Set if a message may have several records."""
        several = getattr(type(schema), "deserialize_all", None)
        if several is not None and several is not getattr(DeserializationSchema, "deserialize_all", None):
            self.deserialize_all = schema.deserialize_all

    def deserialize(self, record: KafkaRecord) -> Sequence[Any]:
        if record.value is None:
            return ()
        if self.deserialize_all is not None:
            return self.deserialize_all(record.value)
        value = self.schema.deserialize(record.value)
        return () if value is None else (value,)


class _OfFunction(KafkaRecordDeserializationSchema):
    def __init__(self, function: Callable[[KafkaRecord], Any]) -> None:
        self._function = function

    def deserialize(self, record: KafkaRecord) -> Sequence[Any]:
        made = self._function(record)
        return () if made is None else (made,)


def _same(record: KafkaRecord) -> KafkaRecord:
    return record
