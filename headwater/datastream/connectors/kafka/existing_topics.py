"""Whether the cluster has the topics and partitions that a program chooses."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from headwater.common.errors import SerializationError
from headwater.datastream.connectors.kafka.client import KafkaClient, consumer

CREATION_SECONDS: Final = 1.0
"""How long a broker that creates topics by itself may take for one."""
_PAUSE_SECONDS: Final = 0.1


class ExistingTopics:
    """Remembers how many partitions topics have. Asks Kafka for those that it does not know."""

    def __init__(self, owner: str, properties: Mapping[str, str]) -> None:
        self._owner = owner
        self._properties = properties
        self._counts: dict[str, int] = {}

    def check(self, topic: str | Sequence[str], partitions: Sequence[int] | None) -> None:
        """Raise SerializationError if one of the messages has nowhere to go; ExternalSystemError if Kafka is away."""
        for name, partition in _highest(topic, partitions).items():
            if partition >= self._counts.get(name, 0):
                self._counts[name] = count = self._ask(name)
                if not count:
                    raise SerializationError(f"topic: Kafka {self._servers} has no topic '{name}'; create it")
                if partition >= count:
                    raise SerializationError(
                        f"partition: topic '{name}' at Kafka {self._servers} has partitions 0 to {count - 1}, "
                        f"found {partition}"
                    )

    @property
    def _servers(self) -> str:
        return self._properties.get("bootstrap.servers", "")

    def _ask(self, topic: str) -> int:
        """Return how many partitions the topic has; 0: there is no such topic.

        A broker that creates topics when somebody asks for them does so now, as it would when a message came.
        """
        client = consumer(self._owner, self._properties, {"allow.auto.create.topics": True})
        try:
            deadline = time.monotonic() + CREATION_SECONDS
            while not (count := _count(client, topic)) and time.monotonic() < deadline:
                time.sleep(_PAUSE_SECONDS)
            return count
        finally:
            client.client.close()


def _count(client: KafkaClient, topic: str) -> int:
    found = client.topics(topic).get(topic)
    return 0 if found is None else len(found.partitions)


def _highest(topic: str | Sequence[str], partitions: Sequence[int] | None) -> dict[str, int]:
    """{topic: the highest partition that a message goes to}."""
    if isinstance(topic, str):
        return {topic: max(partitions, default=0) if partitions is not None else 0}
    if partitions is None:
        return dict.fromkeys(topic, 0)
    highest: dict[str, int] = {}
    for name, partition in zip(topic, partitions, strict=True):
        highest[name] = max(highest.get(name, 0), partition)
    return highest
