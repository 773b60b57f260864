"""Messages of MQTT topics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.common.rejected import Rejected
from headwater.common.serialization import DeserializationSchema
from headwater.datastream.connectors.buffered_source import MOST, Buffer, BufferedSource, Feed, Position, Received
from headwater.datastream.connectors.decoding_reader import Decode, Message, OfSchema, decoder_of, whole
from headwater.datastream.connectors.library import library
from headwater.datastream.connectors.mqtt.client import MqttClient, MqttConnection


class MqttRecord(NamedTuple):
    """One message."""

    topic: str
    payload: bytes
    retained: bool = False


def _payload(record: MqttRecord) -> bytes:
    return record.payload


class MqttSource(BufferedSource):
    """Subscribes to topics, in the driver. At least once, with QoS 1: a message is acknowledged when a durable
    checkpoint has it. The broker keeps what was not acknowledged for the client id, for a week, and sends it again
    when the job is back. QoS 2 is taken as 1: with 2 the broker would forget a message as soon as the driver has it.
    With QoS 0, what no durable checkpoint has is lost with the driver.
    """

    def __init__(
        self,
        connection: MqttConnection,
        topics: Sequence[str],
        client_id: str,
        deserializer: DeserializationSchema | Callable[[MqttRecord], Any] | None = None,
        qos: int = 1,
    ) -> None:
        """:param client_id: the same whenever the job starts, and no other client's: the broker knows the job by it.

        :param deserializer: a schema for payloads, or a function of an `MqttRecord`; None: records are `MqttRecord`s.
        """
        library("paho.mqtt.client", "MQTT", "mqtt")
        if isinstance(topics, str) or not topics or not all(isinstance(topic, str) and topic for topic in topics):
            raise ConfigurationError(f"MqttSource: topics: expected a list of topics, found {topics!r}")
        if qos not in (0, 1, 2) or not isinstance(client_id, str) or not client_id:
            raise ConfigurationError(
                f"MqttSource: expected a client id and QoS 0, 1 or 2, found {client_id!r}, {qos!r}"
            )
        if not isinstance(connection, MqttConnection):
            raise ConfigurationError(f"MqttSource: expected an MqttConnection, found {connection!r}")
        decode: Decode
        if deserializer is None:
            decode = whole
        elif callable(getattr(deserializer, "deserialize", None)):
            decode = OfSchema(deserializer, _payload, "MqttSource")  # type: ignore[arg-type]
        else:
            decode = decoder_of(deserializer, "MqttSource: deserializer")
        super().__init__(decode)
        self.connection = connection
        self.topics = tuple(topics)
        self.client_id = client_id
        self.qos = min(qos, 1)

    def __repr__(self) -> str:
        return f"MqttSource({', '.join(self.topics)} at {self.connection!r})"

    def new_feed(self) -> Feed:
        return _MqttFeed(self)

    def read_again(self, rejected: Rejected) -> Sequence[Any]:
        known = rejected.attributes
        return self._decode(MqttRecord(str(known["topic"]), rejected.raw or b"", bool(known["retained"])))


class _MqttFeed(Feed):
    def __init__(self, source: MqttSource) -> None:
        self._source = source
        self._client = MqttClient(
            "MqttSource",
            source.connection,
            source.client_id,
            keeps_session=source.qos > 0,
            topics=[(topic, source.qos) for topic in source.topics],
            on_refused=self._refused,
            receive_maximum=MOST,  # so that `put` never waits: that would be the thread that keeps the connection alive
        )
        self._buffer: Buffer | None = None
        self._lock = threading.Lock()
        self._generation = 0
        """Of the connection: a message id of an earlier one may be another message's by now."""

    def start(self, position: Position, buffer: Buffer) -> None:
        self._buffer = buffer
        self._client.client.on_message = self._message
        self._client.client.on_disconnect = self._disconnected
        self._client.connect()

    def _refused(self, error: HeadwaterError) -> None:
        assert self._buffer is not None
        self._buffer.fail(error)

    def _disconnected(self, *_: Any) -> None:
        with self._lock:
            self._generation += 1  # what was not acknowledged comes again

    def _message(self, client: Any, userdata: Any, given: Any) -> None:
        record = MqttRecord(given.topic, given.payload, bool(given.retain))
        where = f"topic '{record.topic}'"
        attributes: dict[str, bytes | str | int | None] = {"topic": record.topic, "retained": int(record.retained)}
        assert self._buffer is not None
        token = (self._generation, given.mid, given.qos)
        self._buffer.put(Received(Message(record, record.payload, where, None, attributes), token))

    def acknowledge(self, received: list[Received]) -> None:
        with self._lock:
            for each in received:
                generation, mid, qos = each.token
                if qos and generation == self._generation:
                    self._client.client.ack(mid, qos)

    def close(self) -> None:
        self._client.close()
