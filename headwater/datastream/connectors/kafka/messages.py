"""A batch of messages as columns: what the schema makes of records, and what a producer sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headwater.common.errors import HeadwaterError, SerializationError, UserCodeError, short_repr
from headwater.common.rejected import why_rejected
from headwater.datastream.connectors.kafka.client import KafkaClient, library
from headwater.datastream.connectors.kafka.existing_topics import ExistingTopics
from headwater.datastream.connectors.kafka.message_check import (
    check_bytes,
    check_topics,
    headers_as_pairs,
    partition_numbers,
)
from headwater.datastream.connectors.kafka.serialization import KafkaRecordSerializationSchema

DEFAULT_MAX_BYTES = 1_000_000
"""Of a message, if `message.max.bytes` says nothing else: librdkafka's, and nearly the brokers', default."""
POLL_SECONDS = 0.1


class Messages(msgspec.Struct, frozen=True, array_like=True):
    """Columns of equal length. A column that is None has nothing for any message."""

    topic: str | list[str]
    values: list[bytes | None]
    keys: list[bytes | None] | None = None
    timestamps: list[int | None] | None = None
    partitions: list[int] | None = None
    headers: list[list[tuple[str, bytes | None]]] | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def first_topic(self) -> str:
        return self.topic if isinstance(self.topic, str) else self.topic[0]


@dataclass(frozen=True)
class MessageFormat:
    """Makes messages of records."""

    owner: str
    """Whose it is, for errors."""
    schema: KafkaRecordSerializationSchema
    max_bytes: int
    with_timestamps: bool
    topics: ExistingTopics | None = None
    """Asked if the schema chooses topics or partitions."""

    def messages(self, records: Sequence[Any], timestamps: Sequence[int | None] | None) -> Messages:
        """Serialise a batch. Raises an error that names the record that cannot be a message.

        What it returns can be spooled, read back and, as far as can be known now, sent.
        """
        try:
            return self._made(records, timestamps)
        except Exception as error:
            why_rejected(error)
            raise self._blamed(records, error) from error

    def _made(self, records: Sequence[Any], timestamps: Sequence[int | None] | None) -> Messages:
        schema = self.schema
        values: list[Any] = [schema.value_of(record) for record in records]
        keys: list[Any] | None = None if schema.key_of is None else [schema.key_of(record) for record in records]
        check_bytes("value", values)
        if keys is not None:
            check_bytes("key", keys)
        stamped = timestamps is not None and self.with_timestamps
        made = Messages(
            topic=schema.topic if schema.topic_of is None else [schema.topic_of(record) for record in records],  # type: ignore[arg-type]
            values=values,
            keys=keys,
            timestamps=[stamp if (stamp or 0) >= 0 else None for stamp in timestamps or ()] if stamped else None,
            partitions=None if schema.partition_of is None else partition_numbers(map(schema.partition_of, records)),
            headers=None
            if schema.headers_of is None
            else [headers_as_pairs(schema.headers_of(record)) for record in records],
        )
        if not isinstance(made.topic, str):
            check_topics(made.topic)
        if self.topics is not None:
            self.topics.check(made.topic, made.partitions)
        self._check_sizes(records, made)
        return made

    def batch(self, records: Sequence[Any], timestamps: Sequence[int | None] | None) -> tuple[Messages, int, str]:
        """The same, for a spool."""
        messages = self.messages(records, timestamps)
        return messages, len(messages), messages.first_topic

    def _check_sizes(self, records: Sequence[Any], made: Messages) -> None:
        """What is too large must fail here: once a checkpoint promises it, it has to be written."""
        sizes = [len(value) if value is not None else 0 for value in made.values]
        if made.keys is not None:
            sizes = [size + len(key or b"") for size, key in zip(sizes, made.keys, strict=True)]
        if made.headers is not None:
            sizes = [size + _size_of(headers) for size, headers in zip(sizes, made.headers, strict=True)]
        if max(sizes, default=0) + _OVERHEAD > self.max_bytes:
            size = next(size for size in sizes if size + _OVERHEAD > self.max_bytes)
            raise SerializationError(
                f"a message of {size} bytes is larger than message.max.bytes ({self.max_bytes}) allows; "
                "set a larger one here and on the broker, or make the record smaller"
            )

    def _blamed(self, records: Sequence[Any], error: Exception) -> HeadwaterError:
        """The error, with the first record that cannot be serialised."""
        for record in records:
            try:
                self._made([record], None)
            except HeadwaterError as cause:
                return SerializationError(f"{self.owner}: {cause}; record: {short_repr(record)}")
            except Exception as cause:
                return UserCodeError.from_exception(cause, self.owner, record, -1)
        return SerializationError(f"{self.owner}: {error}")


def _size_of(headers: Sequence[tuple[str, bytes | None]]) -> int:
    return sum(len(name.encode()) + len(value or b"") + _HEADER_OVERHEAD for name, value in headers)


_HEADER_OVERHEAD = 10
"""Two lengths."""
_OVERHEAD = 512
"""What Kafka adds to a message, and to a batch of one."""


def send(client: KafkaClient, messages: Messages) -> None:
    """Put a batch into the producer's queue. Waits while the queue is full. Nothing is sent for sure on return."""
    produce, poll = client.client.produce, client.client.poll
    topics, keys, stamps = messages.topic, messages.keys, messages.timestamps
    partitions, headers = messages.partitions, messages.headers
    plain = isinstance(topics, str) and partitions is None and headers is None
    for index, value in enumerate(messages.values):
        options: dict[str, Any] = {}
        if keys is not None:
            options["key"] = keys[index]
        if stamps is not None and (stamp := stamps[index]) is not None:
            options["timestamp"] = stamp
        if not plain:
            if partitions is not None:
                options["partition"] = partitions[index]
            if headers is not None:
                options["headers"] = headers[index]
        topic = topics if isinstance(topics, str) else topics[index]
        while True:
            try:
                produce(topic, value, **options)
                break
            except BufferError:
                poll(POLL_SECONDS)
            except library().KafkaException as error:
                raise client.failed(f"cannot send to topic '{topic}'", error) from None
    poll(0)
