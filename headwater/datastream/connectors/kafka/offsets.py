"""Where reading begins and ends: settings, and what they mean for the partitions of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from headwater.common.errors import ConfigurationError, HeadwaterError, short_repr
from headwater.datastream.connectors.kafka.client import CONNECT_SECONDS, KafkaClient, library


@dataclass(frozen=True, order=True)
class KafkaTopicPartition:
    """A partition of a topic."""

    topic: str
    partition: int

    def __iter__(self) -> Iterator[Any]:
        return iter((self.topic, self.partition))

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class KafkaOffsetResetStrategy(Enum):
    """What happens where no offset is known."""

    LATEST = 0
    EARLIEST = 1
    NONE = 2


class _Kind(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed"
    TIMESTAMP = "timestamp"
    OFFSETS = "offsets"


@dataclass(frozen=True)
class KafkaOffsetsInitializer:
    """Says at which offset each partition begins, or ends. Made by its static methods."""

    kind: _Kind
    reset: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE
    timestamp_ms: int = 0
    given: Mapping[KafkaTopicPartition, int] = field(default_factory=dict)

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """The oldest record that Kafka still has."""
        return KafkaOffsetsInitializer(_Kind.EARLIEST)

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """The end, as it is when the job first looks."""
        return KafkaOffsetsInitializer(_Kind.LATEST)

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """Where the consumer group stands; where it has no offset, as the strategy says (NONE: that is an error)."""
        return KafkaOffsetsInitializer(_Kind.COMMITTED, _strategy(offset_reset_strategy))

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """The first record that is not older (ms); the end, if there is none."""
        return KafkaOffsetsInitializer(_Kind.TIMESTAMP, timestamp_ms=int(timestamp))

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """These offsets; for other partitions, as the strategy says (NONE: that is an error)."""
        for where, offset in offsets.items():
            if not isinstance(where, KafkaTopicPartition) or not isinstance(offset, int) or offset < 0:
                raise ConfigurationError(
                    "KafkaOffsetsInitializer.offsets: expected {KafkaTopicPartition(topic, partition): offset}, found "
                    f"{short_repr({where: offset}, 100)}"
                )
        return KafkaOffsetsInitializer(_Kind.OFFSETS, _strategy(offset_reset_strategy), given=dict(offsets))

    def resolve(self, client: KafkaClient, partitions: Sequence[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        """Ask the cluster which offsets these are now."""
        if not partitions:
            return {}
        kafka = library()
        try:
            return self._resolve(client, partitions)
        except kafka.KafkaException as error:
            raise client.failed(f"cannot find the {self.kind.value} offsets", error) from None

    def _resolve(
        self, client: KafkaClient, partitions: Sequence[KafkaTopicPartition]
    ) -> dict[KafkaTopicPartition, int]:
        if self.kind in (_Kind.EARLIEST, _Kind.LATEST):
            return {each: _ends(client, each)[self.kind is _Kind.LATEST] for each in partitions}
        if self.kind is _Kind.OFFSETS:
            found: dict[KafkaTopicPartition, int | None] = {each: self.given.get(each) for each in partitions}
        else:
            found = self._asked(client, partitions)
        reset = self.reset if self.kind is not _Kind.TIMESTAMP else KafkaOffsetResetStrategy.LATEST
        return {
            each: _after_reset(client, each, reset, self.kind) if offset is None else offset
            for each, offset in found.items()
        }

    def _asked(
        self, client: KafkaClient, partitions: Sequence[KafkaTopicPartition]
    ) -> dict[KafkaTopicPartition, int | None]:
        """Offsets that the cluster knows by group or by time; None where it knows none."""
        kafka = library()
        if self.kind is _Kind.COMMITTED:
            asked = [kafka.TopicPartition(*each) for each in partitions]
            answers = client.client.committed(asked, timeout=CONNECT_SECONDS)
        else:
            asked = [kafka.TopicPartition(*each, self.timestamp_ms) for each in partitions]
            answers = client.client.offsets_for_times(asked, timeout=CONNECT_SECONDS)
        for answer in answers:
            if answer.error is not None:
                raise kafka.KafkaException(answer.error)
        return {
            KafkaTopicPartition(each.topic, each.partition): each.offset if each.offset >= 0 else None
            for each in answers
        }


def _after_reset(client: KafkaClient, where: KafkaTopicPartition, reset: KafkaOffsetResetStrategy, kind: _Kind) -> int:
    if reset is KafkaOffsetResetStrategy.NONE:
        whose = "the consumer group has no committed offset" if kind is _Kind.COMMITTED else "no offset was given"
        raise HeadwaterError(
            f"{client.owner}: {whose} for partition {where.partition} of topic '{where.topic}'; give one, or a "
            "KafkaOffsetResetStrategy (EARLIEST or LATEST)"
        )
    return _ends(client, where)[reset is KafkaOffsetResetStrategy.LATEST]


def _ends(client: KafkaClient, where: KafkaTopicPartition) -> tuple[int, int]:
    """The first offset that Kafka has, and the one behind the last."""
    low, high = client.client.get_watermark_offsets(library().TopicPartition(*where), timeout=CONNECT_SECONDS)
    return low, high


def _strategy(strategy: object) -> KafkaOffsetResetStrategy:
    if not isinstance(strategy, KafkaOffsetResetStrategy):
        raise ConfigurationError(f"expected a KafkaOffsetResetStrategy, found {short_repr(strategy, 100)}")
    return strategy
