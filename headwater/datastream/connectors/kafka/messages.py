"""A batch of messages as columns: what the schema makes of records, and what a producer sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headwater.common.errors import HeadwaterError, SerializationError, UserCodeError, short_repr
from headwater.datastream.connectors.kafka.client import KafkaClient, library
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

    def messages(self, records: Sequence[Any], timestamps: Sequence[int | None] | None) -> Messages:
        """Serialise a batch. Raises an error that names the record that cannot be a message."""
        schema = self.schema
        stamped = timestamps is not None and self.with_timestamps
        try:
            values: list[bytes | None] = [schema.value_of(record) for record in records]
            keys = None if schema.key_of is None else [schema.key_of(record) for record in records]
            made = Messages(
                topic=schema.topic or [schema.topic_of(record) for record in records],  # type: ignore[misc]
                values=values,
                keys=keys,  # type: ignore[arg-type]
                timestamps=[stamp if (stamp or 0) >= 0 else None for stamp in timestamps or ()] if stamped else None,
                partitions=None if schema.partition_of is None else list(map(schema.partition_of, records)),
                headers=None if schema.headers_of is None else [list(schema.headers_of(record)) for record in records],
            )
        except Exception as error:
            raise self._blamed(records, error) from error
        self._check_sizes(records, values, keys)
        return made

    def _check_sizes(self, records: Sequence[Any], values: list[bytes | None], keys: Sequence[bytes] | None) -> None:
        """What is too large must fail here: once a checkpoint promises it, it has to be written."""
        sizes = [len(value) if value is not None else 0 for value in values]
        if keys is not None:
            sizes = [size + len(key or b"") for size, key in zip(sizes, keys, strict=True)]
        if max(sizes, default=0) + _OVERHEAD > self.max_bytes:
            size, record = next(
                each for each in zip(sizes, records, strict=True) if each[0] + _OVERHEAD > self.max_bytes
            )
            raise SerializationError(
                f"{self.owner}: a message of {size} bytes is larger than message.max.bytes ({self.max_bytes}) allows; "
                f"record: {short_repr(record)}; set a larger one here and on the broker, or make the record smaller"
            )

    def _blamed(self, records: Sequence[Any], error: Exception) -> HeadwaterError:
        """The error, with the first record that cannot be serialised."""
        schema = self.schema
        for record in records:
            try:
                for step in (schema.value_of, schema.key_of, schema.topic_of, schema.partition_of, schema.headers_of):
                    if step is not None:
                        step(record)
            except HeadwaterError as cause:
                return SerializationError(f"{self.owner}: {cause}")
            except Exception as cause:
                return UserCodeError.from_exception(cause, self.owner, record, -1)
        return SerializationError(f"{self.owner}: {error}")


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
