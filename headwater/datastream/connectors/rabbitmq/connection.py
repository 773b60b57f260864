"""Where RabbitMQ is, and connections to it. The only file that imports pika."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError
from headwater.common.secrets import HIDDEN, resolve
from headwater.datastream.connectors.library import library
from headwater.datastream.no_effect import warn_no_effect

CONNECT_SECONDS: Final = 10.0


@dataclass(frozen=True)
class _Settings:
    host: str = ""
    port: int = 5672
    virtual_host: str = "/"
    user_name: str = "guest"
    password: str = "guest"
    tls: bool = False
    prefetch_count: int = 0
    """0: as many as the source may keep."""
    uri: str | None = None
    connection_timeout_ms: int = int(CONNECT_SECONDS * 1000)
    recovery_interval_ms: int = 1000
    automatic_recovery: bool = True
    topology_recovery: bool = True
    heartbeat_s: int | None = None
    channel_max: int | None = None
    frame_max: int | None = None


class RMQConnectionConfig:
    """Host, port, virtual host, user and password; made by `RMQConnectionConfig.Builder()`."""

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings

    def get_host(self) -> str:
        return self.settings.host

    def get_port(self) -> int:
        return self.settings.port

    def get_virtual_host(self) -> str:
        return self.settings.virtual_host

    def get_user_name(self) -> str:
        return self.settings.user_name

    def get_password(self) -> str:
        return self.settings.password

    def get_uri(self) -> str | None:
        return self.settings.uri

    def get_connection_timeout(self) -> int:
        return self.settings.connection_timeout_ms

    def get_network_recovery_interval(self) -> int:
        return self.settings.recovery_interval_ms

    def is_automatic_recovery(self) -> bool:
        return self.settings.automatic_recovery

    def is_topology_recovery(self) -> bool:
        return self.settings.topology_recovery

    def get_requested_heartbeat(self) -> int | None:
        return self.settings.heartbeat_s

    def get_requested_channel_max(self) -> int | None:
        return self.settings.channel_max

    def get_requested_frame_max(self) -> int | None:
        return self.settings.frame_max

    @property
    def where(self) -> str:
        """For errors."""
        return f"{self.settings.host}:{self.settings.port}"

    def __repr__(self) -> str:
        return f"RMQConnectionConfig({self.where}, {self.settings.user_name}, password={HIDDEN})"

    class Builder:
        """Collects the settings. A password may refer to a secret: ${env:NAME}, ${file:/path}."""

        def __init__(self) -> None:
            self._settings = _Settings()

        def _with(self, **settings: Any) -> RMQConnectionConfig.Builder:
            self._settings = replace(self._settings, **settings)
            return self

        def set_host(self, host: str) -> RMQConnectionConfig.Builder:
            return self._with(host=host)

        def set_port(self, port: int) -> RMQConnectionConfig.Builder:
            return self._with(port=port)

        def set_virtual_host(self, vhost: str) -> RMQConnectionConfig.Builder:
            return self._with(virtual_host=vhost)

        def set_user_name(self, user_name: str) -> RMQConnectionConfig.Builder:
            return self._with(user_name=user_name)

        def set_password(self, password: str) -> RMQConnectionConfig.Builder:
            return self._with(password=password)

        def set_prefetch_count(self, prefetch_count: int) -> RMQConnectionConfig.Builder:
            """So many messages the broker sends before it wants acknowledgements, which come with checkpoints."""
            return self._with(prefetch_count=prefetch_count)

        def set_connection_timeout(self, connection_timeout: int) -> RMQConnectionConfig.Builder:
            """Milliseconds."""
            return self._with(connection_timeout_ms=connection_timeout)

        def set_network_recovery_interval(self, network_recovery_interval: int) -> RMQConnectionConfig.Builder:
            """Milliseconds between two tries of a source to connect again."""
            return self._with(recovery_interval_ms=network_recovery_interval)

        def set_automatic_recovery(self, automatic_recovery: bool) -> RMQConnectionConfig.Builder:
            """False: a source whose connection breaks fails the job."""
            return self._with(automatic_recovery=automatic_recovery)

        def set_topology_recovery_enabled(self, topology_recovery_enabled: bool) -> RMQConnectionConfig.Builder:
            warn_no_effect("set_topology_recovery_enabled()", "queues are not declared here")
            return self._with(topology_recovery=topology_recovery_enabled)

        def set_requested_heartbeat(self, requested_heartbeat: int) -> RMQConnectionConfig.Builder:
            """Seconds."""
            return self._with(heartbeat_s=requested_heartbeat)

        def set_requested_channel_max(self, requested_channel_max: int) -> RMQConnectionConfig.Builder:
            return self._with(channel_max=requested_channel_max)

        def set_requested_frame_max(self, requested_frame_max: int) -> RMQConnectionConfig.Builder:
            return self._with(frame_max=requested_frame_max)

        def set_uri(self, uri: str) -> RMQConnectionConfig.Builder:
            """amqp://user:password@host:5672/vhost, or amqps://..."""
            parts = urlsplit(uri)
            if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
                raise ConfigurationError("RMQConnectionConfig: set_uri: expected amqp://user:password@host:5672/vhost")
            tls = parts.scheme == "amqps"
            return self._with(
                host=parts.hostname,
                port=parts.port or (5671 if tls else 5672),
                virtual_host=unquote(parts.path[1:]) or "/",
                user_name=unquote(parts.username or "guest"),
                password=unquote(parts.password or "guest"),
                tls=tls,
                uri=uri,
            )

        def build(self) -> RMQConnectionConfig:
            if not self._settings.host:
                raise ConfigurationError("RMQConnectionConfig: no host; call set_host('localhost') or set_uri(...)")
            return RMQConnectionConfig(self._settings)


def pika() -> Any:
    logging.getLogger("pika").setLevel(logging.CRITICAL)  # errors are told by those who see them
    return library("pika", "RabbitMQ", "rabbitmq")


def connect(owner: str, config: RMQConnectionConfig) -> Any:
    """A blocking connection. Raises if the broker is not there, or does not let us in."""
    client, settings = pika(), config.settings
    password = resolve(settings.password, f"{owner}: password")
    limits = {"heartbeat": settings.heartbeat_s, "channel_max": settings.channel_max, "frame_max": settings.frame_max}
    parameters = client.ConnectionParameters(
        settings.host,
        settings.port,
        settings.virtual_host,
        client.PlainCredentials(settings.user_name, password),
        socket_timeout=settings.connection_timeout_ms / 1000,
        blocked_connection_timeout=60,
        **{name: value for name, value in limits.items() if value is not None},
        ssl_options=client.SSLOptions(_tls(), settings.host) if settings.tls else None,
    )
    try:
        return client.BlockingConnection(parameters)
    except client.exceptions.ProbableAuthenticationError:
        raise HeadwaterError(
            f"{owner}: RabbitMQ {config.where} refuses user '{settings.user_name}' for virtual host "
            f"'{settings.virtual_host}': wrong name, password or rights"
        ) from None
    except (client.exceptions.ProbableAccessDeniedError, client.exceptions.ConnectionClosedByBroker) as error:
        raise HeadwaterError(f"{owner}: RabbitMQ {config.where} refuses the connection: {error}") from None
    except (client.exceptions.AMQPError, OSError) as error:
        text = str(error) or repr(error)
        raise ExternalSystemError(f"{owner}: cannot connect to RabbitMQ {config.where}: {text}") from None


def _tls() -> Any:
    import ssl

    return ssl.create_default_context()


def check_queue(owner: str, config: RMQConnectionConfig, channel: Any, queue: str) -> None:
    """Raise if there is no such queue. As in Flink, it must have been declared by its owner."""
    try:
        channel.queue_declare(queue, passive=True)
    except pika().exceptions.ChannelClosedByBroker as error:
        raise HeadwaterError(f"{owner}: queue '{queue}' at RabbitMQ {config.where}: {error.reply_text}") from None
