"""A connection to an MQTT broker: made where it is used. The only file that imports paho."""

from __future__ import annotations

import threading
from collections.abc import Callable
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
    """A client with a thread. It connects again by itself; `on_connected` is called each time."""

    def __init__(
        self,
        owner: str,
        where: MqttConnection,
        client_id: str,
        *,
        keeps_session: bool,
        on_connected: Callable[[Any], None] | None = None,
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
        self._on_connected = on_connected
        self._answered = threading.Event()
        self._refused = ""
        self._reason = 0
        self.client.on_connect = self._connected

    def _connected(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._reason = reason.value
        self._refused = str(reason) if reason.is_failure else ""
        if not self._refused and self._on_connected is not None:
            self._on_connected(client)
        self._answered.set()

    def connect(self) -> None:
        """Raises if the broker is not there, or does not let us in."""
        where = f"{self._where.host}:{self._where.port}"
        try:
            self.client.connect(
                self._where.host, self._where.port, clean_start=self._clean, properties=self._connect_properties
            )
        except (OSError, ValueError) as error:
            raise ExternalSystemError(f"{self.owner}: cannot connect to MQTT broker {where}: {error}") from None
        self.client.loop_start()
        if not self._answered.wait(CONNECT_SECONDS):
            raise ExternalSystemError(f"{self.owner}: MQTT broker {where} does not answer")
        if self._refused:
            text = f"{self.owner}: MQTT broker {where} refuses the connection: {self._refused}"
            raise HeadwaterError(text) if self._reason in REFUSALS else ExternalSystemError(text)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()
