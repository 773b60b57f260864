"""Messages to a queue of RabbitMQ: at least once, each with an id by which the receiver can tell."""

from __future__ import annotations

from typing import Any

from headwater.common.connector import Committer
from headwater.common.errors import (
    ConfigurationError,
    ExternalSystemError,
    SerializationError,
    short_repr,
)
from headwater.common.row_changes import is_insert_only
from headwater.common.serialization import SerializationSchema
from headwater.datastream.connectors.marked_committer import NotedCommitter
from headwater.datastream.connectors.message_sink import MessageSink, serializer_of
from headwater.datastream.connectors.rabbitmq.connection import RMQConnectionConfig, check_queue, connect, pika
from headwater.datastream.connectors.spool import Spooled


class RMQSink(MessageSink):
    """Publishes the messages of a checkpoint to a queue when that is durable, and waits for the broker's confirmation.

    At least once: a driver that dies in the middle publishes them again, with the same correlation ids. So an
    `RMQSource` with `use_correlation_id` does not drop them (it drops what it has acknowledged only), but a receiver
    that remembers ids can.
    """

    owner = "RMQSink"

    def __init__(
        self, connection_config: RMQConnectionConfig, queue_name: str, serialization_schema: SerializationSchema
    ) -> None:
        pika()
        if not isinstance(connection_config, RMQConnectionConfig):
            raise ConfigurationError(
                f"RMQSink: expected an RMQConnectionConfig, found {connection_config!r}; did you forget build()?"
            )
        self.config = connection_config
        self.queue = queue_name
        self.serialize = serializer_of(serialization_schema, "RMQSink")
        self.insert_only = is_insert_only(serialization_schema)

    def __repr__(self) -> str:
        return f"RMQSink({self.queue} at {self.config.where})"

    def create_committer(self) -> Committer:
        return RMQCommitter(self)

    def message(self, record: Any) -> bytes:
        content = self.serialize(record)
        if not isinstance(content, bytes):
            raise SerializationError(f"RMQSink: record {short_repr(record)} gives {short_repr(content)}, not bytes")
        return content


class RMQCommitter(NotedCommitter):
    """Publishes, in order, with confirmations."""

    def __init__(self, sink: RMQSink) -> None:
        super().__init__(f"RMQSink ({sink.queue})")
        self._sink = sink

    def check(self) -> None:
        connection = connect(self.owner, self._sink.config)
        try:
            check_queue(self.owner, self._sink.config, connection.channel(), self._sink.queue)
        finally:
            if connection.is_open:
                connection.close()

    def send(self, job_id: str, epoch: int, committables: list[Spooled]) -> None:
        client, sink = pika(), self._sink
        # Not kept open: nobody would answer the broker's heartbeats between two commits.
        connection = connect(self.owner, sink.config)
        try:
            channel = connection.channel()
            channel.confirm_delivery()
            for id, content in self.messages(committables, bytes):
                properties = client.BasicProperties(correlation_id=id, delivery_mode=client.DeliveryMode.Persistent)
                channel.basic_publish("", sink.queue, content, properties, mandatory=True)
        except (client.exceptions.AMQPError, OSError) as error:
            text = str(error) or repr(error)
            raise ExternalSystemError(f"{self.owner}: cannot publish to RabbitMQ {sink.config.where}: {text}") from None
        finally:
            if connection.is_open:
                connection.close()
