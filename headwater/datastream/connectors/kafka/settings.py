"""The settings of Kafka's Java client, as Flink programs have them, turned into librdkafka's. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from headwater.common.advice import warn_user
from headwater.common.errors import ConfigurationError

RENAMED: Final = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "max.request.size": "message.max.bytes",
}
"""{Java's name: librdkafka's}. The others are the same, or unknown to librdkafka, which says so."""

OURS: Final = frozenset(
    (
        "key.deserializer", "value.deserializer", "key.serializer", "value.serializer",  # schemas do that
        "auto.offset.reset", "enable.auto.commit", "auto.commit.interval.ms", "group.id",  # the connector does that
        "partition.discovery.interval.ms", "commit.offsets.on.checkpoint", "client.id.prefix",
        "register.consumer.metrics", "transactional.id",
    )
)  # fmt: skip
"""Settings that the connector itself reads, or replaces."""

WITHOUT_EFFECT: Final = frozenset(
    (
        "max.poll.records", "max.poll.interval.ms", "session.timeout.ms", "heartbeat.interval.ms",
        "partition.assignment.strategy", "interceptor.classes", "metric.reporters", "metrics.num.samples",
        "buffer.memory", "max.block.ms", "partitioner.class", "flink.disable-metrics",
        "flink.partition-discovery.interval-millis",
    )
)  # fmt: skip
"""Settings of the Java client that mean nothing here: said once, not refused."""

_CONSUMER_ONLY: Final = ("fetch.", "isolation.level", "queued.", "max.partition.fetch.bytes", "check.crcs")
_PRODUCER_ONLY: Final = (
    "linger.ms", "batch.", "acks", "compression.", "queue.buffering.", "partitioner", "transaction.timeout.ms",
    "enable.idempotence", "delivery.timeout.ms", "message.timeout.ms", "retries", "sticky.partitioning.",
)  # fmt: skip
"""A sink has a consumer, too, for its mark; a source may have got the properties of both."""
_LOGIN: Final = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')


def client_settings(properties: Mapping[str, str], owner: str, *, producer: bool) -> dict[str, str]:
    """Return librdkafka's settings. Raises ConfigurationError for what cannot be translated."""
    found: dict[str, str] = {}
    for key, value in properties.items():
        if key in OURS or key.startswith(_CONSUMER_ONLY if producer else _PRODUCER_ONLY):
            continue
        if key in WITHOUT_EFFECT:
            warn_user(f"{owner}: the Kafka property '{key}' has no effect in headwater")
        elif key == "sasl.jaas.config":
            found |= _login(value, owner)
        elif key.startswith("ssl.truststore."):
            found |= _trust(properties, owner)
        else:
            found[RENAMED.get(key, key)] = value
    return found


def _login(jaas: str, owner: str) -> dict[str, str]:
    """User and password in Java's `sasl.jaas.config`."""
    fields = dict(_LOGIN.findall(jaas))
    if not {"username", "password"} <= fields.keys():
        raise ConfigurationError(
            f"{owner}: sasl.jaas.config has no username and password; for other ways to log in set librdkafka's own "
            "properties (sasl.mechanisms, sasl.kerberos..., sasl.oauthbearer...)"
        )
    return {"sasl.username": fields["username"], "sasl.password": fields["password"].replace('\\"', '"')}


def _trust(properties: Mapping[str, str], owner: str) -> dict[str, str]:
    location = properties.get("ssl.truststore.location", "")
    if properties.get("ssl.truststore.type", "JKS").upper() != "PEM":
        raise ConfigurationError(
            f"{owner}: ssl.truststore.location {location!r} is a Java key store, which only Java reads; convert it to "
            "PEM (keytool -exportcert -rfc) and set ssl.ca.location"
        )
    return {"ssl.ca.location": location}
