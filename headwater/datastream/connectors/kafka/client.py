"""Clients of Kafka: made from settings, where and when they are needed. The only file that imports confluent_kafka."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError
from headwater.common.secrets import names_a_secret, resolved, without_passwords
from headwater.datastream.connectors.kafka.settings import client_settings

log = logging.getLogger("headwater.kafka")
"""librdkafka's own log, too: it does not belong on the terminal."""

CONNECT_SECONDS = 10.0
"""How long a request for topics or offsets may take: then the cluster cannot be reached."""


def library() -> Any:
    """Return the module confluent_kafka, or say how to get it."""
    try:
        import confluent_kafka
    except ImportError:
        raise ConfigurationError(
            "the Kafka connector needs the package confluent-kafka: pip install 'headwater[kafka]'"
        ) from None
    return confluent_kafka


class KafkaClient:
    """A consumer or producer, with what it last said went wrong.

    Made in the process that uses it, after any fork: its threads do not survive one. Not thread safe.
    """

    def __init__(self, kind: str, owner: str, properties: Mapping[str, str], own: Mapping[str, Any]) -> None:
        """`own` are settings that the connector insists on. `owner` is who needs the client, for errors."""
        self.owner = owner
        self.servers = properties.get("bootstrap.servers", "")
        self.last_problem = ""
        settings = client_settings(resolved(properties, owner), owner, producer=kind == "Producer") | dict(own)
        self._secrets = [str(value) for key, value in settings.items() if names_a_secret(key)]
        kafka = library()
        try:
            self.client: Any = getattr(kafka, kind)({**settings, "error_cb": self._problem}, logger=log)
        except kafka.KafkaException as error:
            text = without_passwords(error.args[0].str(), *self._secrets)
            raise ConfigurationError(f"{owner}: Kafka does not accept the settings: {text}") from None

    def _problem(self, error: Any) -> None:
        self.last_problem = without_passwords(error.str(), *self._secrets)

    def failed(self, what: str, error: Exception) -> HeadwaterError:
        """Return the error to raise: `what` could not be done. Most pass; what lacks rights or names does not."""
        kafka = library()
        cause = error.args[0] if isinstance(error, kafka.KafkaException) and error.args else None
        text = cause.str() if isinstance(cause, kafka.KafkaError) else str(error)
        text = without_passwords(text, *self._secrets)
        if self.last_problem and self.last_problem not in text:
            text = f"{text} ({self.last_problem})"
        message = f"{self.owner}: {what} at Kafka {self.servers}: {text}"
        if isinstance(cause, kafka.KafkaError) and cause.code() in permanent_codes():
            return HeadwaterError(message)
        return ExternalSystemError(message)

    def topics(self, topic: str | None = None) -> dict[str, Any]:
        """Return {topic: its metadata} as the cluster has it now: of all topics, or of one."""
        kafka = library()
        not_there = (0, kafka.KafkaError.UNKNOWN_TOPIC_OR_PART, kafka.KafkaError.LEADER_NOT_AVAILABLE)  # or not yet
        try:
            found = self.client.list_topics(topic, timeout=CONNECT_SECONDS)
        except kafka.KafkaException as error:
            self.client.poll(0)  # lets it say what it saw
            raise self.failed("cannot list the topics", error) from None
        for name, metadata in found.topics.items():
            code = metadata.error.code() if metadata.error is not None else 0
            if code not in not_there and topic is not None:
                raise HeadwaterError(f"{self.owner}: topic '{name}' at Kafka {self.servers}: {metadata.error.str()}")
        return {name: each for name, each in found.topics.items() if each.error is None}


def consumer(owner: str, properties: Mapping[str, str], own: Mapping[str, Any] | None = None) -> KafkaClient:
    """A consumer that joins no group and never skips: an offset that is not there is an error."""
    fixed = {
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "allow.auto.create.topics": False,
        "enable.partition.eof": True,
    }
    group = properties.get("group.id") or "headwater-without-group"
    return KafkaClient("Consumer", owner, properties, {"group.id": group, **fixed, **(own or {})})


def producer(owner: str, properties: Mapping[str, str], own: Mapping[str, Any] | None = None) -> KafkaClient:
    """A producer whose retries neither repeat nor reorder. Without a setting, keys go to the partitions of Java's."""
    defaults = {
        "partitioner": "murmur2_random",
        # librdkafka 2.16 may wait for ever in a transaction once all brokers were down for a moment, and it has looked
        # up their addresses anew ("rebootstrap").
        "metadata.recovery.strategy": "none",
    }
    given = {key: value for key, value in defaults.items() if key not in properties}
    return KafkaClient("Producer", owner, properties, {**given, **(own or {})})


def permanent_codes() -> frozenset[int]:
    """Errors that time does not cure."""
    error = library().KafkaError
    return frozenset(
        (
            error.TOPIC_AUTHORIZATION_FAILED,
            error.GROUP_AUTHORIZATION_FAILED,
            error.CLUSTER_AUTHORIZATION_FAILED,
            error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            error.UNKNOWN_TOPIC_OR_PART,
            error._UNKNOWN_TOPIC,
            error._UNKNOWN_PARTITION,
            error.MSG_SIZE_TOO_LARGE,
            error.INVALID_TRANSACTION_TIMEOUT,
        )
    )
