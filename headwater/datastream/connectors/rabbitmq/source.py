"""Messages of a queue of RabbitMQ."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, Final

from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError
from headwater.common.rejected import Rejected
from headwater.common.serialization import DeserializationSchema
from headwater.datastream.connectors.buffered_source import MOST, Buffer, BufferedSource, Feed, Position, Received, log
from headwater.datastream.connectors.decoding_reader import Message, OfSchema
from headwater.datastream.connectors.rabbitmq.connection import RMQConnectionConfig, check_queue, connect, pika

LOOK_SECONDS: Final = 0.05


class RMQSource(BufferedSource):
    """Consumes a queue, in the driver. A message is acknowledged when a durable checkpoint has it.

    With `use_correlation_id`, exactly once: messages must have correlation ids that no other message of the queue has,
    and the job must be the queue's only consumer. Those that a checkpoint has and that come again, because the driver
    died before it could acknowledge them, are dropped. Without, at least once.
    """

    def __init__(
        self,
        connection_config: RMQConnectionConfig,
        queue_name: str,
        use_correlation_id: bool,
        deserialization_schema: DeserializationSchema,
    ) -> None:
        pika()
        if not isinstance(connection_config, RMQConnectionConfig):
            raise ConfigurationError(
                f"RMQSource: expected an RMQConnectionConfig, found {connection_config!r}; did you forget build()?"
            )
        super().__init__(OfSchema(deserialization_schema, bytes, "RMQSource"))
        self.config = connection_config
        self.queue = queue_name
        self.use_correlation_id = bool(use_correlation_id)

    def __repr__(self) -> str:
        return f"RMQSource({self.queue} at {self.config.where})"

    def new_feed(self) -> Feed:
        return _RMQFeed(self)

    def read_again(self, rejected: Rejected) -> Sequence[Any]:
        return self._decode(rejected.raw or b"")


class _RMQFeed(Feed):
    """One thread owns the connection. Others ask it to acknowledge."""

    def __init__(self, source: RMQSource) -> None:
        self._source = source
        self._owner = f"RMQSource ({source.queue})"
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._generation = 0
        """Of the connection: delivery tags of an earlier one mean nothing."""
        self._outstanding: dict[int, None] = {}
        """Delivery tags that the broker wants acknowledged, in order. Of the thread that owns the connection."""
        self._acknowledged: list[tuple[int, int]] = []
        """(generation, delivery tag): to be told to the broker."""
        self._thread: threading.Thread | None = None
        self._connection: Any = None

    def start(self, position: Position, buffer: Buffer) -> None:
        channel = self._connect()
        self._thread = threading.Thread(target=self._receive, args=(channel, buffer), name="rabbitmq", daemon=True)
        self._thread.start()

    def _connect(self) -> Any:
        source = self._source
        self._connection = connect(self._owner, source.config)
        try:
            channel = self._connection.channel()
            check_queue(self._owner, source.config, channel, source.queue)
            channel.basic_qos(prefetch_count=min(source.config.settings.prefetch_count or MOST, MOST))
        except BaseException:
            with contextlib.suppress(Exception):
                self._connection.close()
            raise
        self._generation += 1
        self._outstanding.clear()
        return channel

    def _receive(self, channel: Any, buffer: Buffer) -> None:
        errors = pika().exceptions
        while not self._closed.is_set():
            try:
                for method, properties, body in channel.consume(self._source.queue, inactivity_timeout=LOOK_SECONDS):
                    if method is not None:
                        self._outstanding[method.delivery_tag] = None
                        buffer.put(self._received(method, properties, body))
                    self._acknowledge(channel)
                    if self._closed.is_set():
                        break
            except HeadwaterError as error:
                buffer.fail(error)
                break
            except (errors.AMQPError, OSError) as error:
                text = str(error) or repr(error)
                log.warning("%s: the connection broke: %s; connecting again", self._owner, text)
                if not self._source.config.settings.automatic_recovery:
                    where = self._source.config.where
                    buffer.fail(ExternalSystemError(f"{self._owner}: the connection to RabbitMQ {where} broke: {text}"))
                    break
                # What was not acknowledged comes again.
                channel = self._connect_again(buffer)
        with contextlib.suppress(Exception):
            self._connection.close()

    def _connect_again(self, buffer: Buffer) -> Any:
        seconds = self._source.config.settings.recovery_interval_ms / 1000
        while not self._closed.wait(seconds):
            try:
                return self._connect()
            except ExternalSystemError as error:
                log.warning("%s; trying again", error)
            except HeadwaterError as error:
                buffer.fail(error)
                self._closed.set()
        return None

    def _received(self, method: Any, properties: Any, body: bytes) -> Received:
        id = properties.correlation_id
        where = f"queue '{self._source.queue}'"
        if self._source.use_correlation_id and not id:
            raise HeadwaterError(
                f"{self._owner}: a message of {where} has no correlation id, which use_correlation_id needs; let its "
                "producer set one, or use at-least-once (use_correlation_id=False)"
            )
        timestamp = None if properties.timestamp is None else int(properties.timestamp) * 1000
        message = Message(body, body, where, timestamp, {"correlation_id": id})
        token = (self._generation, method.delivery_tag)
        return Received(message, token, id if self._source.use_correlation_id else None)

    def acknowledge(self, received: list[Received]) -> None:
        with self._lock:
            self._acknowledged += (each.token for each in received)

    def _acknowledge(self, channel: Any) -> None:
        """All before the first that is still wanted at once, the others one by one.

        They need not be the oldest: what comes again is delivered behind messages of a higher priority.
        """
        with self._lock:
            wanted, self._acknowledged = self._acknowledged, []
        tags = {tag for generation, tag in wanted if generation == self._generation}
        if not tags:
            return
        whole = list(takewhile(tags.__contains__, self._outstanding))
        if whole:
            channel.basic_ack(whole[-1], multiple=True)
        for tag in sorted(tags.difference(whole)):
            channel.basic_ack(tag)
        for tag in tags:
            self._outstanding.pop(tag, None)
        log.debug("acknowledged %d messages, %d are left", len(tags), len(self._outstanding))

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join(5)
