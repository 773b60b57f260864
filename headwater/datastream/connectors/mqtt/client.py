"""A connection to an MQTT broker: made where it is used. The only file that imports paho."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError, short_repr
from headwater.common.secrets import HIDDEN, resolve
from headwater.datastream.connectors.library import library
from headwater.datastream.connectors.mqtt.polling import let_poll

CONNECT_SECONDS: Final = 10.0
SESSION_SECONDS: Final = 7 * 24 * 3600
"""So long a broker keeps what a source that is away has not acknowledged."""
REFUSALS: Final = frozenset((0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C))
"""Reasons that do not pass: protocol, client id, password, rights, ban, method."""


@dataclass(frozen=True)
class MqttConnection:
    """Where the broker is. A password may refer to a secret: ${env:NAME}, ${file:/path}."""

    host: str
    port: int = 1883
    username: str | None = None
    password: str | None = None
    tls: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.host, str) or not self.host or not isinstance(self.port, int):
            raise ConfigurationError(
                f"MqttConnection: expected a host and a port, found {short_repr(self.host)} and {short_repr(self.port)}"
            )

    def __repr__(self) -> str:
        secret = "" if self.password is None else f", password={HIDDEN}"
        return f"MqttConnection({self.host}:{self.port}, username={self.username}{secret})"


class MqttClient:
    """A client with a thread. It connects again by itself, and subscribes again to its `topics` (with a QoS each).

    A subscription that the broker refuses, or grants with a lower QoS, is an error of `connect`; of `on_refused` if it
    comes later. Otherwise nobody would notice that messages stay away, or get lost.
    """

    def __init__(
        self,
        owner: str,
        where: MqttConnection,
        client_id: str,
        *,
        keeps_session: bool,
        topics: Sequence[tuple[str, int]] = (),
        on_refused: Callable[[HeadwaterError], None] | None = None,
        receive_maximum: int | None = None,
    ) -> None:
        self.owner = owner
        self._where = where
        mqtt = library("paho.mqtt.client", "MQTT", "mqtt")
        let_poll(mqtt)
        properties = library("paho.mqtt.properties", "MQTT", "mqtt")
        types = library("paho.mqtt.packettypes", "MQTT", "mqtt")
        self.client: Any = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, client_id, protocol=mqtt.MQTTv5, manual_ack=keeps_session
        )
        self.client.connect_timeout = CONNECT_SECONDS
        if where.username is not None:
            password = None if where.password is None else resolve(where.password, f"{owner}: password")
            self.client.username_pw_set(where.username, password)
        if where.tls:
            self.client.tls_set()
        self._connect_properties = properties.Properties(types.PacketTypes.CONNECT)
        if keeps_session:
            self._connect_properties.SessionExpiryInterval = SESSION_SECONDS
        if receive_maximum is not None:
            self._connect_properties.ReceiveMaximum = receive_maximum
        self._clean = not keeps_session
        self._topics = list(topics)
        self._on_refused = on_refused
        self._first: Future[HeadwaterError | None] = Future()
        """What came of the first connection."""
        self.client.on_connect = self._connected
        self.client.on_subscribe = self._subscribed

    def _connected(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            text = f"{self._broker} refuses the connection: {reason}"
            self._answer(HeadwaterError(text) if reason.value in REFUSALS else ExternalSystemError(text))
        elif self._topics:
            client.subscribe(self._topics)  # `_subscribed` gets the answer
        else:
            self._answer(None)

    def _subscribed(self, client: Any, userdata: Any, mid: int, reasons: list[Any], properties: Any) -> None:
        errors = []
        for (topic, qos), reason in zip(self._topics, reasons, strict=True):
            if reason.is_failure:
                errors.append(f"{self._broker} refuses the subscription to '{topic}': {reason}")
            elif reason.value < qos:
                errors.append(
                    f"{self._broker} grants QoS {reason.value} for '{topic}', not {qos}: it would not send again what "
                    "gets lost. Let the broker grant it, or set qos=0 to accept that"
                )
        if errors and self._first.done() and self._on_refused is not None:
            self._on_refused(HeadwaterError(errors[0]))
        self._answer(HeadwaterError(errors[0]) if errors else None)

    def _answer(self, error: HeadwaterError | None) -> None:
        if not self._first.done():
            self._first.set_result(error)

    @property
    def _broker(self) -> str:
        return f"{self.owner}: MQTT broker {self._where.host}:{self._where.port}"

    def connect(self) -> None:
        """Returns when all topics are subscribed to. Raises if the broker is not there, or does not let us in."""
        try:
            self.client.connect(
                self._where.host, self._where.port, clean_start=self._clean, properties=self._connect_properties
            )
        except (OSError, ValueError) as error:
            where = f"{self._where.host}:{self._where.port}"
            raise ExternalSystemError(f"{self.owner}: cannot connect to MQTT broker {where}: {error}") from None
        self.client.loop_start()
        try:
            refused = self._first.result(CONNECT_SECONDS)
        except TimeoutError:
            raise ExternalSystemError(f"{self._broker} does not answer") from None
        if refused is not None:
            raise refused

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()
