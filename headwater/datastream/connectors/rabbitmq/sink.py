"""Messages to a queue of RabbitMQ: at least once, each with an id by which the receiver can tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.common.connector import Committer, Sink, SinkWriter, WriterContext
from headwater.common.errors import (
    ConfigurationError,
    ExternalSystemError,
    SerializationError,
    UserCodeError,
    short_repr,
)
from headwater.common.row_changes import is_insert_only
from headwater.common.serialization import SerializationSchema
from headwater.datastream.connectors.marked_committer import NotedCommitter
from headwater.datastream.connectors.rabbitmq.connection import RMQConnectionConfig, check_queue, connect, pika
from headwater.datastream.connectors.spool import Spooled, read_spool
from headwater.datastream.connectors.spool_writer import SpoolWriter


class RMQSink(Sink):
    """Publishes the messages of a checkpoint to a queue when that is durable, and waits for the broker's confirmation.

    At least once: a driver that dies in the middle publishes them again, with the same correlation ids. So an
    `RMQSource` with `use_correlation_id` does not drop them (it drops what it has acknowledged only), but a receiver
    that remembers ids can.
    """

    def __init__(
        self, connection_config: RMQConnectionConfig, queue_name: str, serialization_schema: SerializationSchema
    ) -> None:
        pika()
        if not isinstance(connection_config, RMQConnectionConfig):
            raise ConfigurationError(
                f"RMQSink: expected an RMQConnectionConfig, found {connection_config!r}; did you forget build()?"
            )
        if not callable(getattr(serialization_schema, "serialize", None)):
            raise ConfigurationError(f"RMQSink: expected a schema, found {short_repr(serialization_schema)}")
        self.config = connection_config
        self.queue = queue_name
        self.serialize = serialization_schema.serialize
        self.insert_only = is_insert_only(serialization_schema)

    def __repr__(self) -> str:
        return f"RMQSink({self.queue} at {self.config.where})"

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return SpoolWriter(context, self._encoded)

    def create_committer(self) -> Committer:
        return RMQCommitter(self)

    def _encoded(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> tuple[Any, int, str]:
        made = []
        for value in values:
            try:
                content = self.serialize(value)
            except SerializationError:
                raise
            except Exception as error:
                raise UserCodeError.from_exception(error, "RMQSink", value, -1) from error
            if not isinstance(content, bytes):
                raise SerializationError(f"RMQSink: record {short_repr(value)} gives {short_repr(content)}, not bytes")
            made.append(content)
        return made, len(made), ""


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
            for spooled in sorted(committables, key=lambda each: each.order):
                number = 0
                for batch in read_spool(spooled, self.context.files, list[bytes]):
                    for content in batch:
                        properties = client.BasicProperties(
                            correlation_id=f"{spooled.identity}-{number}", delivery_mode=client.DeliveryMode.Persistent
                        )
                        channel.basic_publish("", sink.queue, content, properties, mandatory=True)
                        number += 1
        except (client.exceptions.AMQPError, OSError) as error:
            text = str(error) or type(error).__name__
            raise ExternalSystemError(f"{self.owner}: cannot publish to RabbitMQ {sink.config.where}: {text}") from None
        finally:
            if connection.is_open:
                connection.close()
