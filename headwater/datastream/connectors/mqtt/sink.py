"""Messages to MQTT topics: at least once."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Final

from headwater.common.callables import unfit
from headwater.common.connector import Committer
from headwater.common.errors import (
    ConfigurationError,
    ExternalSystemError,
    SerializationError,
    short_repr,
)
from headwater.common.row_changes import is_insert_only
from headwater.common.serialization import SerializationSchema
from headwater.datastream.connectors.library import library
from headwater.datastream.connectors.marked_committer import NotedCommitter
from headwater.datastream.connectors.message_sink import MessageSink
from headwater.datastream.connectors.mqtt.client import MqttClient, MqttConnection
from headwater.datastream.connectors.spool import Spooled

PUBLISH_SECONDS: Final = 30.0
WINDOW: Final = 200
"""Messages under way at once: brokers take about as many."""


class MqttSink(MessageSink):
    """Publishes the messages of a checkpoint when that is durable, and waits for the broker's word on each.

    At least once: a driver that dies in the middle publishes that checkpoint's messages again. MQTT has no ids by
    which receivers could tell.
    """

    owner = "MqttSink"

    def __init__(
        self,
        connection: MqttConnection,
        topic: str | Callable[[Any], str],
        serializer: SerializationSchema | Callable[[Any], bytes],
        qos: int = 1,
        retain: bool = False,
    ) -> None:
        """:param topic: the topic, or a function from a record to its topic."""
        library("paho.mqtt.client", "MQTT", "mqtt")
        if not isinstance(connection, MqttConnection) or qos not in (0, 1, 2):
            raise ConfigurationError(
                f"MqttSink: expected an MqttConnection and QoS 0, 1 or 2, found {connection!r}, {qos!r}"
            )
        serialize: Any = getattr(serializer, "serialize", serializer)
        for name, given in (("topic", topic), ("serializer", serialize)):
            if not (name == "topic" and isinstance(given, str)) and (found := unfit(given, 1)):
                raise ConfigurationError(f"MqttSink: {name}: expected a function of a record, found {found}")
        self.connection = connection
        self.topic = topic
        self.serialize = serialize
        self.insert_only = is_insert_only(serialize)
        self.qos = qos
        self.retain = retain

    def __repr__(self) -> str:
        return f"MqttSink({self.topic if isinstance(self.topic, str) else 'several topics'} at {self.connection!r})"

    def create_committer(self) -> Committer:
        return MqttCommitter(self)

    def message(self, record: Any) -> tuple[str, bytes]:
        topic = self.topic if isinstance(self.topic, str) else self.topic(record)
        payload = self.serialize(record)
        if not isinstance(topic, str) or not topic or set(topic) & {"#", "+"} or not isinstance(payload, bytes):
            raise SerializationError(
                f"MqttSink: topic {short_repr(topic)} and payload {short_repr(payload)} of record "
                f"{short_repr(record)}; expected text without wildcards, and bytes"
            )
        return topic, payload


class MqttCommitter(NotedCommitter):
    """Publishes, in order."""

    def __init__(self, sink: MqttSink) -> None:
        super().__init__("MqttSink")
        self._sink = sink
        self._client: MqttClient | None = None

    def check(self) -> None:
        self._connected()

    def _connected(self) -> MqttClient:
        if self._client is None:
            client_id = f"headwater-{uuid.uuid4().hex[:12]}"
            client = MqttClient(self.owner, self._sink.connection, client_id, keeps_session=False)
            try:
                client.connect()
            except BaseException:
                client.close()
                raise
            self._client = client
        return self._client

    def send(self, job_id: str, epoch: int, committables: list[Spooled]) -> None:
        client = self._connected().client
        under_way: list[Any] = []
        try:
            for batch in self.batches(committables):
                for topic, payload in batch:
                    under_way.append(client.publish(topic, payload, self._sink.qos, self._sink.retain))
                    if len(under_way) == WINDOW:
                        self._wait(under_way)
            self._wait(under_way)
        except BaseException:
            self.close()
            raise

    def _wait(self, under_way: list[Any]) -> None:
        where = f"{self._sink.connection.host}:{self._sink.connection.port}"
        for each in under_way:
            try:
                each.wait_for_publish(PUBLISH_SECONDS)
            except (RuntimeError, ValueError) as error:
                raise ExternalSystemError(f"{self.owner}: cannot publish to MQTT broker {where}: {error}") from None
            if not each.is_published():
                raise ExternalSystemError(f"{self.owner}: MQTT broker {where} does not confirm a message")
        under_way.clear()

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()
